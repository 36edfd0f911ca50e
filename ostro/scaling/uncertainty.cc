#include "ostro/scaling/uncertainty.h"

#include <algorithm>

#include "ostro/numerics/functions.h"
#include "ostro/numerics/threefry.h"

namespace ostro::scaling {
namespace {

// One less than a thousand, so that 5 % and 95 % are the draws 50 and 950 in order.
constexpr size_t kDraws = 999;

numerics::Key key_of(const char* purpose) {
  return numerics::fold_in(numerics::fold_in(numerics::key_from_seed(0), "scaling"), purpose);
}

// One of `size` things, by the draw at `index`.
size_t choose(numerics::Key key, uint64_t index, size_t size) {
  return static_cast<size_t>(uint64_t{numerics::random_bits(key, index)} * size >> 32);
}

// Student's t with 95 % below it, divided by that of the normal distribution: exact for 1 to 3
// degrees, then Cornish and Fisher's expansion.
double student_share(double degrees) {
  constexpr double z = 1.6448536269514722, z2 = z * z, z4 = z2 * z2, z6 = z4 * z2;
  if (degrees == 1) return 6.313751514675043 / z;
  if (degrees == 2) return 2.919985580353725 / z;
  if (degrees == 3) return 2.3533634348018264 / z;
  return 1 + (z2 + 1) / (4 * degrees) + (5 * z4 + 16 * z2 + 3) / (96 * degrees * degrees) +
         (3 * z6 + 19 * z4 + 17 * z2 - 15) / (384 * degrees * degrees * degrees);
}

}  // namespace

Uncertainty::Uncertainty(SurfaceSearch& search, std::span<const ScalingRun> runs, const SurfaceFit& fit) {
  const size_t n = runs.size();
  const double degrees = static_cast<double>(n) - fit.unknowns;
  noise_ = numerics::sqrt_f64(fit.objective / degrees);
  const double larger = numerics::sqrt_f64(static_cast<double>(n) / degrees) * student_share(degrees);
  for (const double error : fit.residuals) errors_.push_back(error * larger);
  const numerics::Key key = key_of("errors");
  std::vector<double> losses(n);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    for (size_t i = 0; i < n; ++i)
      losses[i] = runs[i].loss - fit.residuals[i] + errors_[choose(key, draw * n + i, n)];
    draws_.push_back(search.fit(losses).surface);
  }
}

Interval90 Uncertainty::of_runs(const Surface& fitted, double parameters, double tokens, int64_t runs) const {
  const numerics::Key key = key_of("runs");
  const double centre = fitted.at(parameters, tokens);
  std::vector<double> values;
  uint64_t index = 0;
  for (const Surface& surface : draws_) {
    double error = 0;
    for (int64_t run = 0; run < runs; ++run) error += errors_[choose(key, index++, errors_.size())];
    // Where the drawn surface lies above the fitted one, the true one may lie as far below it.
    values.push_back(centre - (surface.at(parameters, tokens) - centre) + error / static_cast<double>(runs));
  }
  return quantiles(std::move(values));
}

Interval90 Uncertainty::quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[(values.size() + 1) / 20 - 1], values[(values.size() + 1) * 19 / 20 - 1]};
}

}  // namespace ostro::scaling
