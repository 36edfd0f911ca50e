#include "ostro/scaling/allocation.h"

#include <algorithm>
#include <cmath>

#include "ostro/numerics/functions.h"

namespace ostro::scaling {

using numerics::exp_f64;
using numerics::log_f64;

double FlopsLaw::for_token(double parameters) const {
  return factor * exp_f64(exponent * log_f64(parameters));
}

FlopsLaw flops_law(std::span<const ScalingRun> runs) {
  const auto n = static_cast<double>(runs.size());
  double x_mean = 0, y_mean = 0, xx = 0, xy = 0;
  for (const ScalingRun& run : runs) {
    x_mean += log_f64(run.parameters) / n;
    y_mean += log_f64(run.flops / run.tokens) / n;
  }
  for (const ScalingRun& run : runs) {
    const double x = log_f64(run.parameters) - x_mean;
    xx += x * x;
    xy += x * (log_f64(run.flops / run.tokens) - y_mean);
  }
  FlopsLaw law;
  law.exponent = xy / xx;
  law.factor = exp_f64(y_mean - law.exponent * x_mean);
  for (const ScalingRun& run : runs) {
    const double share = law.for_token(run.parameters) * run.tokens / run.flops - 1;
    law.worst = std::max(law.worst, share < 0 ? -share : share);
  }
  return law;
}

std::optional<Allocation> optimum(const Surface& surface, const FlopsLaw& law, double flops) {
  const double a = surface.size_exponent, b = surface.data_exponent, q = law.exponent;
  if (!(surface.size_factor > 0) || !(surface.data_factor > 0) || !(q > 0)) return std::nullopt;
  // Where the derivative of A / N^a + B (factor N^q / flops)^b by ln N is 0.
  const double log_share = log_f64(a * surface.size_factor) - log_f64(b * q * surface.data_factor) +
                           b * (log_f64(flops) - log_f64(law.factor));
  Allocation out;
  out.parameters = exp_f64(log_share / (a + b * q));
  out.tokens = flops / law.for_token(out.parameters);
  for (const double number : {out.parameters, out.tokens})
    if (!std::isfinite(number) || !(number > 0)) return std::nullopt;
  return out;
}

}  // namespace ostro::scaling
