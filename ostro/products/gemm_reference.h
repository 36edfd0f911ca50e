// dot_f32, dot_bf16, tree, nested_tree: docs/spec/numerics.md, N6, N7 and N8, for one output, in scalar code
// that shares nothing with the kernels. For tests and for the start-up check. Call them with MXCSR 0x9fc0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ostro::kernels::reference {

inline float widen(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

// N1's cast.
inline uint16_t round_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>(bits >> 31 << 15);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// N6: one chain of fused multiply-adds from +0.
template <typename A, typename B>
float dot_f32(A a, B b, int64_t begin, int64_t end) {
  float acc = 0.0f;
  for (int64_t k = begin; k < end; ++k)
    acc = std::fma(static_cast<float>(a(k)), static_cast<float>(b(k)), acc);
  return acc;
}

// N7: an even and an odd chain per group (32 in the definition), counted from `begin`, padded with +0.
template <typename A, typename B>
float dot_bf16(A a, B b, int64_t begin, int64_t end, int64_t group = 32) {
  float c = 0.0f;
  for (int64_t g = begin; g < end; g += group) {
    float chain[2] = {0.0f, 0.0f};
    for (int64_t i = 0; i < group; ++i) {
      const float x = g + i < end ? widen(a(g + i)) : 0.0f;
      const float y = g + i < end ? widen(b(g + i)) : 0.0f;
      chain[i % 2] = std::fma(x, y, chain[i % 2]);
    }
    c = c + (chain[0] + chain[1]);
  }
  return c;
}

// N8: the balanced tree whose left part is the largest power of two below the count.
inline float tree(const float* partials, int64_t count) {
  if (count == 1) return partials[0];
  int64_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree(partials, left) + tree(partials + left, count - left);
}

// Nested trees, outermost count first.
inline float nested_tree(std::vector<float> partials, const std::vector<int64_t>& counts) {
  for (size_t level = counts.size(); level-- > 0;) {
    std::vector<float> outer;
    for (size_t i = 0; i < partials.size(); i += static_cast<size_t>(counts[level]))
      outer.push_back(tree(partials.data() + i, counts[level]));
    partials = outer;
  }
  return partials[0];
}

}  // namespace ostro::kernels::reference
