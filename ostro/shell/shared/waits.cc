#include "ostro/shell/shared/waits.h"

#include <poll.h>

namespace ostro::cli {

Waits::Waits() {
  sigset_t waiting;
  sigemptyset(&waiting);
  sigaddset(&waiting, SIGINT);
  sigaddset(&waiting, SIGTERM);
  sigaddset(&waiting, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &waiting, &usual_);
}

Waits::~Waits() { ::pthread_sigmask(SIG_SETMASK, &usual_, nullptr); }

void Waits::for_signal() { ::ppoll(nullptr, 0, nullptr, &usual_); }

void Waits::for_time(std::chrono::nanoseconds time) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec limit{time.count() / kSecond, time.count() % kSecond};
  ::ppoll(nullptr, 0, &limit, &usual_);
}

}  // namespace ostro::cli
