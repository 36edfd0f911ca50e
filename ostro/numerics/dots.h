// dot_f32, dot_bf16: contractions of docs/spec/numerics.md, f32 (N6) and bf16 (N7), one output at a time.
//
// `a(k)` and `b(k)` give element k < n of the operands (float or Bf16), so that callers can use strided data.
// The functions are pure, but need the floating-point environment of fp_env.h on the calling thread.
#pragma once

#include <cstdint>

#include "ostro/numerics/bf16.h"
#include "ostro/numerics/functions.h"

namespace ostro::numerics {

inline constexpr int64_t kDotGroup = 32;  // products per group of a bf16 dot

// N6: acc = fma(a, b, acc), k ascending. Only attention starts from another value than +0.
template <typename A, typename B>
float dot_f32(int64_t n, A&& a, B&& b, float initial = 0.0f) {
  float acc = initial;
  for (int64_t k = 0; k < n; ++k) acc = fma_f32(widen(a(k)), widen(b(k)), acc);
  return acc;
}

// N7: per group of 32 an even and an odd chain from +0, then c + (e + o). Operands beyond n are +0.
template <typename A, typename B>
float dot_bf16(int64_t n, A&& a, B&& b, float initial = 0.0f) {
  float c = initial;
  for (int64_t group = 0; group < n; group += kDotGroup) {
    float e = 0.0f;
    float o = 0.0f;
    for (int64_t k = group; k < group + kDotGroup; k += 2) {
      e = fma_f32(k < n ? widen(a(k)) : 0.0f, k < n ? widen(b(k)) : 0.0f, e);
      o = fma_f32(k + 1 < n ? widen(a(k + 1)) : 0.0f, k + 1 < n ? widen(b(k + 1)) : 0.0f, o);
    }
    c = c + (e + o);
  }
  return c;
}

}  // namespace ostro::numerics
