#include "ostro/run/job/time_limits.h"

#include <algorithm>

namespace ostro::run {
namespace {

using Minutes = std::chrono::minutes;

TimeLimit limit_of(const config::Duration& duration) { return std::chrono::seconds(duration.seconds); }

TimeLimit times(double factor, double seconds) {
  return TimeLimit(static_cast<int64_t>(std::min(factor * seconds * 1e3, 1e15)));
}

}  // namespace

TimeLimit hang_limit(const train::TrainerOptions& options, std::optional<double> slowest) {
  if (options.hang_timeout) return limit_of(*options.hang_timeout);
  return slowest ? std::max<TimeLimit>(Minutes(2), times(10, *slowest)) : TimeLimit(Minutes(60));
}

std::optional<TimeLimit> exchange_limit(const train::TrainerOptions& options, std::optional<double> slowest) {
  if (options.exchange_timeout) return limit_of(*options.exchange_timeout);
  if (!slowest) return std::nullopt;
  return std::max<TimeLimit>(Minutes(10), times(20, *slowest));
}

TimeLimit connect_limit(const train::TrainerOptions& options, int64_t workers) {
  if (options.connect_timeout) return limit_of(*options.connect_timeout);
  return TimeLimit(30'000 + 100 * workers);
}

TimeLimit link_limit(const train::TrainerOptions& options) { return limit_of(options.link_timeout); }

TimeLimit stop_limit(const train::TrainerOptions& options) { return limit_of(options.stop_timeout); }

}  // namespace ostro::run
