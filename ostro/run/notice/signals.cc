#include "ostro/run/notice/signals.h"

#include <signal.h>

#include <atomic>
#include <cerrno>

#include "ostro/base/check.h"
#include "ostro/run/notice/stop_notice.h"

namespace ostro::run {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
constexpr int kStops = 3;  // the first of them ask to stop
constexpr int kEnds = 3;   // of these signals end the process

// A signal handler takes no extra argument, so it needs globals.
std::atomic<int> received_signal{0}, received_count{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a handler may only use lock-free atomics
struct sigaction previous[4];
bool installed = false;

void on_signal(int number) {
  const int error = errno;  // that of a call which the signal interrupts
  int none = 0;
  received_signal.compare_exchange_strong(none, number, std::memory_order_relaxed);
  const int count = received_count.fetch_add(1, std::memory_order_relaxed) + 1;
  write_stop_notice(kEnds - count);
  errno = error;
  if (count < kEnds) return;
  ::signal(number, SIG_DFL);
  ::raise(number);  // the signal stays blocked until this handler returns; then it ends the process
}

}  // namespace

StopSignals::StopSignals() {
  OSTRO_CHECK(!installed, "two StopSignals at once");
  installed = true;
  received_signal = received_count = 0;
  for (int i = 0; i < 4; ++i) {
    ::sigaction(kSignals[i], nullptr, &previous[i]);
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) continue;
    struct sigaction action{};
    action.sa_handler = i < kStops ? on_signal : SIG_IGN;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 4; ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
  installed = false;
}

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

int StopSignals::count() const { return received_count.load(std::memory_order_relaxed); }

}  // namespace ostro::run
