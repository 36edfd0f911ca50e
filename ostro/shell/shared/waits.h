// Waits: waits for a time, or without limit, that SIGINT, SIGTERM and SIGHUP end.
#pragma once

#include <signal.h>

#include <chrono>

namespace ostro::cli {

// While it exists, these signals are blocked in this thread, and in those that it starts, except during a
// wait. So none can come unnoticed between a check for a signal and the wait that follows. Use it in the
// thread that made it.
class Waits {
 public:
  Waits();
  ~Waits();
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  void for_signal();
  void for_time(std::chrono::nanoseconds time);

 private:
  sigset_t usual_;
};

}  // namespace ostro::cli
