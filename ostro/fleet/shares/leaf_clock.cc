#include "ostro/fleet/shares/leaf_clock.h"

#include "ostro/base/watch/slow_leaf.h"

namespace ostro::fleet {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

LeafClock::LeafClock(int64_t step, int64_t rank)
    : step_(step), rank_(rank), begin_(Clock::now()), leaf_(begin_) {}

Status LeafClock::started(const runtime::Buffer& loss, double aside) {
  ++leaves_;
  if (!leaves_are_slow()) return Status();
  RETURN_IF_ERROR(loss.scalar<double>());  // the leaf is computed
  const Seconds took = Clock::now() - leaf_;
  simulated_ += slow_leaf(step_, rank_, took - Seconds(aside - aside_));
  leaf_ = Clock::now();
  aside_ = aside;
  return Status();
}

Result<double> LeafClock::ended(const runtime::Buffer& loss, double aside) {
  RETURN_IF_ERROR(loss.scalar<double>());
  const Seconds all = Clock::now() - begin_;
  const double computed = all.count() - aside;
  return (simulated_ > 0 ? simulated_ : computed) / static_cast<double>(leaves_);
}

}  // namespace ostro::fleet
