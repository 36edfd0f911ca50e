#include "ostro/run/loop/signals.h"

#include <signal.h>

#include <atomic>

#include "ostro/base/check.h"
#include "ostro/run/loop/stop_notice.h"

namespace ostro::run {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT};

// A signal handler takes no extra argument, so it needs globals.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a handler may only use lock-free atomics
struct sigaction previous[2];
bool installed = false;

void on_signal(int number) {
  int none = 0;
  const bool first = received_signal.compare_exchange_strong(none, number, std::memory_order_relaxed);
  write_stop_notice(!first);
  if (first) return;
  ::signal(number, SIG_DFL);
  ::raise(number);  // the signal stays blocked until this handler returns; then it ends the process
}

}  // namespace

StopSignals::StopSignals() {
  OSTRO_CHECK(!installed, "two StopSignals at once");
  installed = true;
  received_signal = 0;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) ::sigaction(kSignals[i], &action, &previous[i]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 2; ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
  installed = false;
}

int StopSignals::received() const { return received_signal.load(std::memory_order_relaxed); }

}  // namespace ostro::run
