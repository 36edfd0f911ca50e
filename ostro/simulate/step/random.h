// Random: draws that are equal on every machine for one seed: the generator is that of the C++ standard, the
// functions are those of the room numerics. Not thread-safe.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "ostro/numerics/functions.h"

namespace ostro::simulate {

class Random {
 public:
  explicit Random(int64_t seed) : bits_(static_cast<uint64_t>(seed)) {}

  // Uniform in (0, 1).
  double uniform() { return (static_cast<double>(bits_() >> 11U) + 0.5) * 0x1.0p-53; }
  // Uniform in [0, n).
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }
  // With this mean.
  double exponential(double mean) { return -mean * numerics::log_f64(uniform()); }
  // exp of a normal number with this standard deviation.
  double log_normal(double deviation) {
    const double radius = std::sqrt(-2 * numerics::log_f64(uniform()));
    return numerics::exp_f64(deviation * radius * numerics::cos_f64(2 * std::numbers::pi * uniform()));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace ostro::simulate
