// quantize_block, dot_int8: docs/spec/numerics.md, N20, for one block and one output, written from the clause
// alone in scalar code that shares nothing with the kernels. For tests, for the start-up check and for
// layouts that no kernel takes. Call them with MXCSR 0x9fc0.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ostro/numerics/threefry.h"

namespace ostro::kernels::reference {

struct QuantizedBlock {
  std::vector<int8_t> q;
  float scale = 0.0f;
};

// The 16 bits that dither the element with this index of the whole array.
inline uint32_t dither_of(const numerics::Key& key, uint64_t index) {
  const numerics::Key block = numerics::threefry2x32(key, static_cast<uint32_t>(index / 4 >> 32),
                                                     static_cast<uint32_t>(index / 4 & 0xffffffffu));
  const uint32_t halves[] = {block.word0 % 65536, block.word0 / 65536, block.word1 % 65536,
                             block.word1 / 65536};
  return halves[index % 4];
}

// dither[i]: the 16 bits of element i; empty: to nearest. In f64, where all that the clause calls exact is.
inline QuantizedBlock quantize_block(std::span<const float> x, std::span<const uint32_t> dither) {
  QuantizedBlock out{std::vector<int8_t>(x.size()), 0.0f};
  const auto value = [&](size_t i) {
    const bool denormal = (std::bit_cast<uint32_t>(x[i]) & 0x7f800000u) == 0;
    return denormal ? 0.0 : static_cast<double>(x[i]);
  };
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if ((std::bit_cast<uint32_t>(x[i]) & 0x7f800000u) == 0x7f800000u) {
      out.scale = std::numeric_limits<float>::quiet_NaN();
      return out;
    }
    largest = std::max(largest, std::fabs(value(i)));
  }
  if (largest == 0) return out;
  int e = std::max(std::ilogb(largest), -120);
  if (largest > 127.0 * std::ldexp(1.0, e - 6)) ++e;
  out.scale = static_cast<float>(std::ldexp(1.0, e - 6));
  for (size_t i = 0; i < x.size(); ++i) {
    double t = std::ldexp(value(i), 6 - e);
    if (std::fabs(t) < 0x1p-126) t = 0;  // flushed
    if (dither.empty()) {
      out.q[i] = static_cast<int8_t>(std::nearbyint(t));
    } else {
      const double u = (2.0 * dither[i] + 1.0) * 0x1p-17;
      out.q[i] =
          static_cast<int8_t>(std::floor(static_cast<double>(static_cast<float>(t) + static_cast<float>(u))));
    }
  }
  return out;
}

// One leaf: qa(k), qb(k) the numbers, sa(block), sb(block) the scales, blocks counted from `begin`.
template <typename QA, typename QB, typename SA, typename SB>
float dot_int8(QA qa, QB qb, SA sa, SB sb, int64_t begin, int64_t end, int64_t block) {
  float c = 0.0f;
  for (int64_t first = begin, i = 0; first < end; first += block, ++i) {
    int32_t sum = 0;
    for (int64_t k = first; k < end && k < first + block; ++k)
      sum += static_cast<int32_t>(qa(k)) * static_cast<int32_t>(qb(k));
    const float p = static_cast<float>(sum) * sb(i);
    c = std::fma(p, sa(i), c);
  }
  return c;
}

}  // namespace ostro::kernels::reference
