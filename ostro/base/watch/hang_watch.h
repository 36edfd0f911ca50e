// A thread that notices when this process hangs: it is watched (pulse.h), and its pulse does not beat.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "ostro/base/watch/pulse.h"

namespace ostro {

class HangWatch {
 public:
  // `timeout` is asked again and again. `on_hang` is called once, from the thread, with what the process does
  // and how long nothing has moved. Time in which the whole process did not run does not count.
  HangWatch(std::function<std::chrono::duration<double>()> timeout,
            std::function<void(const Pulse&, std::chrono::duration<double>)> on_hang);
  ~HangWatch();

 private:
  void run();

  const std::function<std::chrono::duration<double>()> timeout_;
  const std::function<void(const Pulse&, std::chrono::duration<double>)> on_hang_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace ostro
