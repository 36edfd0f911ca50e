// tanh_of_scores, cap_scores: the tanh of docs/spec/numerics.md, N3, over values that lie side by side. The
// loops are plain, over short blocks, which a compiler turns into the vectors of the file that includes this.
#pragma once

#include <cstdint>

#include "ostro/numerics/coefficients.h"

namespace ostro::machine {
namespace {

// Horner from term kFirst on, without a loop, which would keep the one around it from becoming vectors.
template <int kFirst>
inline double expm1_terms(double r) {
  using numerics::coefficients::kExpm1;
  if constexpr (kFirst + 1 == sizeof(kExpm1) / sizeof(kExpm1[0])) {
    return kExpm1[kFirst];
  } else {
    return __builtin_fma(expm1_terms<kFirst + 1>(r), r, kExpm1[kFirst]);
  }
}

// numerics::tanh_f32 in one expression.
inline float tanh_lane(float value) {
  using namespace numerics::coefficients;
  const double x = value;
  double a = __builtin_fabs(x);
  a = a > 22.0 ? 22.0 : a;
  a = a + a;
  const double shifted = a * kLog2eF64 + 0x1.8p52, n = shifted - 0x1.8p52;
  double r = __builtin_fma(-n, kLn2HiF64, a);
  r = __builtin_fma(-n, kLn2LoF64, r);
  const double tail = __builtin_fma(expm1_terms<0>(r), r * r, r);
  const uint64_t exponent = __builtin_bit_cast(uint64_t, shifted) - 0x4338000000000000u + 1023u;
  const double power = __builtin_bit_cast(double, exponent << 52);
  const double em1 = __builtin_fma(tail, power, power - 1.0);
  return static_cast<float>(__builtin_copysign(em1 / (em1 + 2.0), x));
}

// y[i] = tanh((x[i] * scale) / cap), the inner part of attention's soft cap. x and y may be one array.
inline void tanh_of_scores(const float* x, float* y, int64_t n, float scale, float cap) {
  constexpr int kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    float t[kBlock];
    for (int j = 0; j < kBlock; ++j) t[j] = tanh_lane((x[i + j] * scale) / cap);
    for (int j = 0; j < kBlock; ++j) y[i + j] = t[j];
  }
  for (; i < n; ++i) y[i] = tanh_lane((x[i] * scale) / cap);
}

// x[i] = cap * tanh((x[i] * scale) / cap).
inline void cap_scores(float* x, int64_t n, float scale, float cap) {
  tanh_of_scores(x, x, n, scale, cap);
  for (int64_t i = 0; i < n; ++i) x[i] = cap * x[i];
}

}  // namespace
}  // namespace ostro::machine
