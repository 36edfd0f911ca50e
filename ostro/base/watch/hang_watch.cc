#include "ostro/base/watch/hang_watch.h"

#include <algorithm>
#include <utility>

namespace ostro {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kMostLook{0.5};

}  // namespace

HangWatch::HangWatch(std::function<Seconds()> timeout, std::function<void(const Pulse&, Seconds)> on_hang)
    : timeout_(std::move(timeout)), on_hang_(std::move(on_hang)), thread_([this] { run(); }) {}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Checks every tenth of the timeout, at most kMostLook apart. Sums the time between checks at which the pulse
// had not moved, each interval counted as at most twice its planned length: a process that was stopped for an
// hour then has hung for seconds, not for an hour.
void HangWatch::run() {
  int64_t beats = -1;
  Seconds still{0};  // how long nothing has moved
  SteadyClock::time_point last = SteadyClock::now();
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const Seconds look = std::min(kMostLook, timeout_() / 10);
    changed_.wait_for(lock, look, [this] { return stopped_; });
    const SteadyClock::time_point now = SteadyClock::now();
    // A process that was stopped, or a machine that slept, does not hang.
    const Seconds passed = std::min<Seconds>(now - std::exchange(last, now), 2 * look);
    const Pulse pulse = read_pulse();
    if (!pulse.watched || std::exchange(beats, pulse.beats) != pulse.beats) {
      still = Seconds(0);
      continue;
    }
    still += passed;
    if (still < timeout_()) continue;
    lock.unlock();
    on_hang_(pulse, still);
    return;
  }
}

}  // namespace ostro
