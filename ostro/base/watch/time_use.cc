#include "ostro/base/watch/time_use.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

namespace ostro {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct TimeClock {
  std::mutex mutex;
  std::optional<std::thread::id> owner;
  TimeUse use = TimeUse::kStart, first = TimeUse::kStart;
  SteadyClock::time_point since;
  TimesUsed seconds{};

  // With the mutex held.
  void settle() {
    const SteadyClock::time_point now = SteadyClock::now();
    seconds[static_cast<size_t>(use)] += std::chrono::duration<double>(now - since).count();
    since = now;
  }
  bool mine() const { return owner == std::this_thread::get_id(); }
};

TimeClock& time_clock() {
  static TimeClock clock;
  return clock;
}

}  // namespace

void restart_time(TimeUse use) {
  TimeClock& c = time_clock();
  const std::lock_guard lock(c.mutex);
  c.owner = std::this_thread::get_id();
  c.use = c.first = use;
  c.since = SteadyClock::now();
  c.seconds = {};
}

void use_time(TimeUse use) {
  TimeClock& c = time_clock();
  const std::lock_guard lock(c.mutex);
  if (!c.mine()) return;
  c.settle();
  c.use = use;
}

void recount_time(TimeUse use, std::chrono::duration<double> time) {
  TimeClock& c = time_clock();
  const std::lock_guard lock(c.mutex);
  if (!c.mine()) return;
  c.settle();
  c.seconds[static_cast<size_t>(c.use)] -= time.count();
  c.seconds[static_cast<size_t>(use)] += time.count();
}

TimeUse first_use() {
  TimeClock& c = time_clock();
  const std::lock_guard lock(c.mutex);
  return c.first;
}

TimesUsed times_used() {
  TimeClock& c = time_clock();
  const std::lock_guard lock(c.mutex);
  if (c.owner) c.settle();
  return c.seconds;
}

TimeScope::TimeScope(TimeUse use) {
  TimeClock& c = time_clock();
  const std::lock_guard lock(c.mutex);
  if (!c.mine()) return;
  if ((c.use == TimeUse::kRecovery || c.use == TimeUse::kLost) && use != TimeUse::kRecovery) return;
  c.settle();
  before_ = c.use;
  c.use = use;
  active_ = true;
}

TimeScope::~TimeScope() {
  if (active_) use_time(before_);
}

}  // namespace ostro
