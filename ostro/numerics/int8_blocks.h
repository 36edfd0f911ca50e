// BlockScale, block_scale, dither_bits, quantize_nearest, quantize_dithered, dot_int8: integer products of
// docs/spec/numerics.md (N20), one block, one element or one output at a time. The functions are pure, but
// need the floating-point environment of fp_env.h on the calling thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ostro/numerics/bf16.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/threefry.h"

namespace ostro::numerics {

// The scale of a block, a power of two, and what its elements are multiplied with, 1 / scale; 0: all of its
// integers are 0.
struct BlockScale {
  float scale = 0, inverse = 0;
};

// Returns the scale of a block of n elements. x(k) is element k < n, float or Bf16. A block with an infinity
// or a NaN gets the scale NaN; a block of zeros and denormals gets 0. `least`: of the exponent e.
template <typename X>
BlockScale block_scale(int64_t n, X&& x, int least = -120) {
  float largest = 0;
  for (int64_t k = 0; k < n; ++k) {
    const float v = std::fabs(widen(x(k)));
    if (!std::isfinite(v)) return {std::numeric_limits<float>::quiet_NaN(), 0};
    if (std::fpclassify(v) == FP_NORMAL) largest = std::max(largest, v);
  }
  if (largest == 0) return {};
  int e = std::max(std::ilogb(largest), least);
  if (largest > 127 * std::ldexp(1.0f, e - 6)) ++e;
  return {std::ldexp(1.0f, e - 6), std::ldexp(1.0f, 6 - e)};
}

// The 16 bits that dither the element with this row-major index in the whole array. Four neighbours share a
// block of threefry.
inline uint32_t dither_bits(Key key, uint64_t index) {
  const uint64_t number = index / 4;
  const Key block = threefry2x32(key, static_cast<uint32_t>(number >> 32), static_cast<uint32_t>(number));
  const uint32_t word = index % 4 < 2 ? block.word0 : block.word1;
  return index % 2 == 0 ? word & 0xffff : word >> 16;
}

// Each returns the integer that stands for element x of a block with scale s: the first rounds to nearest
// even, the second dithers with 16 bits (dither_bits).
inline int8_t quantize_nearest(float x, const BlockScale& s) {
  return s.inverse == 0 ? int8_t{0} : static_cast<int8_t>(std::nearbyint(x * s.inverse));
}
inline int8_t quantize_dithered(float x, const BlockScale& s, uint32_t bits) {
  if (s.inverse == 0) return 0;
  const float t = x * s.inverse;
  const float u = static_cast<float>(2 * bits + 1) * 0x1p-17f;
  return static_cast<int8_t>(std::floor(t + u));
}

// Returns the product of two rows of n integers, f32. a(k) and b(k) are the integers, sa(g) and sb(g) the
// scales of block g of `block` elements; the last block may be shorter.
template <typename A, typename Sa, typename B, typename Sb>
float dot_int8(int64_t n, int64_t block, A&& a, Sa&& sa, B&& b, Sb&& sb) {
  float c = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    int32_t sum = 0;
    for (int64_t k = begin; k < std::min(n, begin + block); ++k) sum += int32_t{a(k)} * int32_t{b(k)};
    const float p = static_cast<float>(sum) * sb(begin / block);
    c = fma_f32(p, sa(begin / block), c);
  }
  return c;
}

}  // namespace ostro::numerics
