#include "ostro/fleet/shares/leaf_clock.h"

#include "ostro/base/watch/pulse.h"
#include "ostro/base/watch/slow_leaf.h"

namespace ostro::fleet {

using Clock = std::chrono::steady_clock;

LeafClock::LeafClock(int64_t step, int64_t rank, bool alone)
    : step_(step),
      rank_(rank),
      alone_(alone),
      waited_(seconds_waited()),
      begin_(Clock::now()),
      leaf_(begin_) {}

Status LeafClock::started(const runtime::Buffer& loss) {
  ++leaves_;
  if (!leaves_are_slow()) return Status();
  RETURN_IF_ERROR(loss.scalar<double>());  // the leaf is computed
  simulated_ += slow_leaf(step_, rank_, Clock::now() - leaf_);
  leaf_ = Clock::now();
  return Status();
}

Result<double> LeafClock::ended(const runtime::Buffer& loss) {
  RETURN_IF_ERROR(loss.scalar<double>());
  const std::chrono::duration<double> all = Clock::now() - begin_;
  const double computed = all.count() - (alone_ ? seconds_waited() - waited_ : 0);
  return (simulated_ > 0 ? simulated_ : computed) / static_cast<double>(leaves_);
}

}  // namespace ostro::fleet
