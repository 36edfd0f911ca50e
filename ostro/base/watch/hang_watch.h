// HangWatch: a thread that notices when this process hangs, which means that the process is watched (pulse.h)
// and its pulse has not beaten for a timeout.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "ostro/base/watch/pulse.h"

namespace ostro {

// Owns its thread, which ends after one hang or with the destructor.
class HangWatch {
 public:
  // `timeout` is called at every check. `on_hang` is called at most once, from the thread, with the pulse and
  // the time since its last beat. Time in which the whole process did not run does not count.
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
