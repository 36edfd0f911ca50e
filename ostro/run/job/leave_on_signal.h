// LeaveOnSignal: lets a worker leave its job when it is asked to by a signal; the other workers go on.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "ostro/cluster/member.h"
#include "ostro/run/loop/signals.h"

namespace ostro::run {

// While it exists, SIGTERM, SIGINT or SIGHUP makes this worker leave (StopSignals; at most one at a time). A
// thread of its own looks for the signal. `member` must outlive it. asked() may be called from any thread.
class LeaveOnSignal {
 public:
  explicit LeaveOnSignal(cluster::Member& member)
      : thread_([this, &member] {
          while (!ended_ && !signals_.stop_requested()) std::this_thread::sleep_for(kLook);
          if (ended_) return;
          asked_ = true;
          member.leave();
        }) {}
  ~LeaveOnSignal() {
    ended_ = true;
    thread_.join();
  }
  bool asked() const { return asked_; }

 private:
  static constexpr std::chrono::milliseconds kLook{50};
  const StopSignals signals_;
  std::atomic<bool> ended_ = false, asked_ = false;
  std::thread thread_;
};

}  // namespace ostro::run
