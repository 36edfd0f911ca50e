#include "ostro/eval/report/samples.h"

#include "ostro/numerics/functions.h"

namespace ostro::eval {

// The value is a ratio of sums, r = sum(n) / sum(d). Its standard error comes from the residuals n - r d of
// the documents (the linearized variance of a ratio), with n / (n - 1) for the sample.
Estimate micro_average(std::span<const Samples* const> all) {
  double numerator = 0, denominator = 0, n = 0;
  for (const Samples* s : all)
    for (size_t i = 0; i < s->numerators.size(); ++i)
      numerator += s->numerators[i], denominator += s->denominators[i], n += 1;
  Estimate out;
  out.value = numerator / denominator;
  double squares = 0;
  for (const Samples* s : all)
    for (size_t i = 0; i < s->numerators.size(); ++i) {
      const double rest = s->numerators[i] - out.value * s->denominators[i];
      squares += rest * rest;
    }
  if (n > 1) out.standard_error = numerics::sqrt_f64(n / (n - 1) * squares) / denominator;
  return out;
}

Estimate estimate(const Samples& samples) {
  const Samples* one[] = {&samples};
  return micro_average(one);
}

Estimate macro_average(std::span<const Samples* const> all) {
  double sum = 0, squares = 0;
  bool known = true;
  for (const Samples* s : all) {
    const Estimate one = estimate(*s);
    const double error = one.standard_error.value_or(0);
    sum += one.value, squares += error * error;
    known &= one.standard_error.has_value();
  }
  const auto n = static_cast<double>(all.size());
  Estimate out{sum / n, {}};
  if (known) out.standard_error = numerics::sqrt_f64(squares) / n;
  return out;
}

bool difference(const Samples& a, const Samples& b, Samples& out) {
  if (a.numerators.size() != b.numerators.size() || a.denominators != b.denominators) return false;
  out = {};
  for (size_t i = 0; i < a.numerators.size(); ++i)
    out.add(b.numerators[i] - a.numerators[i], a.denominators[i]);
  return true;
}

}  // namespace ostro::eval
