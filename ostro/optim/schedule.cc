#include "ostro/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ostro/numerics/functions.h"

namespace ostro::optim {

namespace {

// The rate of step `step` in a cycle of n steps that begins with `warmup` steps up from `from`.
double rate_in_cycle(const CommonOptions& o, int64_t step, int64_t n, int64_t warmup, double from) {
  const int64_t decay = o.decay ? std::min(steps_of(*o.decay, n), n - warmup) : n - warmup;
  const double peak = o.learning_rate, floor = o.learning_rate * o.min_lr_ratio;
  if (step < warmup) {
    const double share = static_cast<double>(step) / static_cast<double>(warmup);
    return from == 0 ? peak * static_cast<double>(step) / static_cast<double>(warmup)
                     : from + (peak - from) * share;
  }
  const int64_t start = n - decay;
  if (step < start || decay <= 0) return peak;
  const auto t = static_cast<double>(step - start);
  const double fraction = std::min(1.0, t / static_cast<double>(decay));
  constexpr double kPi = 3.141592653589793;
  switch (o.lr_schedule) {
    case LrSchedule::kConstant: return peak;
    case LrSchedule::kLinear: return peak + (floor - peak) * fraction;
    case LrSchedule::kCosine:
      return floor + (peak - floor) * (0.5 * (1.0 + numerics::cos_f64(kPi * fraction)));
    case LrSchedule::kInvSqrt: {
      // Continues from the peak: sqrt(s / (s + t)) with s the warm-up's length (at least 1).
      const auto s = static_cast<double>(std::max<int64_t>(warmup, 1));
      return std::max(floor, peak * std::sqrt(s / (s + t)));
    }
  }
  return peak;
}

}  // namespace

// Goes over the cycles up to that of `step`: each begins at the last rate of the one before.
double learning_rate(const CommonOptions& o, int64_t step, int64_t num_train_steps) {
  const std::vector<int64_t> bounds = cycle_bounds(o, num_train_steps - o.schedule_from);
  step = std::max<int64_t>(step - o.schedule_from, 0);
  double from = o.warmup_from;
  for (size_t i = 0;; ++i) {
    const int64_t n = bounds[i + 1] - bounds[i];
    const int64_t warmup = std::min(steps_of(i == 0 ? o.warmup : o.rewarmup, n), n);
    if (step < bounds[i + 1] || i + 2 == bounds.size())
      return rate_in_cycle(o, step - bounds[i], n, warmup, from);
    from = rate_in_cycle(o, n - 1, n, warmup, from);
  }
}

}  // namespace ostro::optim
