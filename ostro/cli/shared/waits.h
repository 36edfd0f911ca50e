// Waits: waits that a signal ends.
#pragma once

#include <signal.h>

#include <chrono>

namespace ostro::cli {

// While it exists, SIGINT, SIGTERM and SIGHUP wait in this thread, and in those that it starts: none comes
// between looking for one and waiting for one.
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
