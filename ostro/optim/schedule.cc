#include "ostro/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "ostro/numerics/functions.h"

namespace ostro::optim {

double learning_rate(const CommonOptions& o, int64_t step, int64_t num_train_steps) {
  const int64_t warmup = steps_of(o.warmup, num_train_steps);
  const int64_t decay = o.decay ? steps_of(*o.decay, num_train_steps) : num_train_steps - warmup;
  const double peak = o.learning_rate, floor = o.learning_rate * o.min_lr_ratio;
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  const int64_t start = num_train_steps - decay;
  if (step < start || decay <= 0) return peak;
  const auto t = static_cast<double>(step - start);
  const double fraction = std::min(1.0, t / static_cast<double>(decay));
  constexpr double kPi = 3.141592653589793;
  switch (o.lr_schedule) {
    case LrSchedule::kConstant:
      return peak;
    case LrSchedule::kLinear:
      return peak + (floor - peak) * fraction;
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

}  // namespace ostro::optim
