// int8_kernel: the functions of int8_kernel.h for one vector type V. Included by int8_*.cc alone.
//
// Columns are the outer loop: the chains of a few columns are loaded, continued by kInt8Steps steps and
// stored. So every row of B is read along memory, a line at a time, and scales are loaded once for all steps.
#pragma once

#include "ostro/products/kernels/int8_kernel.h"

namespace ostro::kernels {
namespace {

enum class Rounding { kNone, kBf16, kBf16Usual };

constexpr int64_t kLine = 64;  // bytes, and so columns of B

// A vector of B, dequantised. `larger` is used only where scales are usual (kInt8Larger).
template <class V, Rounding kRounding>
inline V weights(const int8_t* w, V scale, V larger) {
  const V q = V::load_i8(w);
  if constexpr (kRounding == Rounding::kBf16Usual) {
    const V c = q * larger;
    return c + V::fma_less(q, scale, c);
  }
  const V product = q * scale;
  if constexpr (kRounding == Rounding::kBf16) return V::round_bf16(product);
  return product;
}

// Continues the chains of the V::kWidth columns from n on by `steps` steps, row of A after row: the elements
// of B are dequantised once and stay in registers for all rows.
template <class V, Rounding kRounding, bool kSame, bool kOneRow>
inline void columns(const Int8Block& b, int64_t n, int steps) {
  V w[kInt8Steps];
  const V scale = V::load(b.scales[0] + n),
          larger = kRounding == Rounding::kBf16Usual ? V::load(b.scales[0] + b.larger + n) : scale;
#pragma GCC unroll 8
  for (int k = 0; k < steps; ++k) {
    if constexpr (kSame)
      w[k] = weights<V, kRounding>(b.w[k] + n, scale, larger);
    else
      w[k] = weights<V, kRounding>(
          b.w[k] + n, V::load(b.scales[k] + n),
          kRounding == Rounding::kBf16Usual ? V::load(b.scales[k] + b.larger + n) : scale);
  }
  const int rows = kOneRow ? 1 : b.rows;
  for (int r = 0; r < rows; ++r) {
    float *even = b.even + r * b.stride + n, *odd = b.odd + r * b.stride + n;
    if constexpr (kRounding == Rounding::kNone) {
      V sum = V::load(even);
#pragma GCC unroll 8
      for (int k = 0; k < steps; ++k) sum = V::fma(V::set1(b.x[k * rows + r]), w[k], sum);
      sum.store(even);
    } else {
      V e = V::load(even), o = V::load(odd);
#pragma GCC unroll 8
      for (int k = 0; k < kInt8Steps; k += 2) {
        e = V::fma(V::set1(b.x[k * rows + r]), w[k], e);
        o = V::fma(V::set1(b.x[(k + 1) * rows + r]), w[k + 1], o);
      }
      e.store(even);
      o.store(odd);
    }
  }
}

// All columns of the block, a line of B at a time, and the prefetch of the rows that are read later.
template <class V, Rounding kRounding, bool kSame, bool kOneRow>
inline void strip(const Int8Block& b, int steps) {
  for (int64_t line = 0; line < b.columns; line += kLine) {
    const int64_t end = line + kLine < b.columns ? line + kLine : b.columns;
    for (int64_t n = line; n < end; n += V::kWidth) columns<V, kRounding, kSame, kOneRow>(b, n, steps);
    // After the line was used: where rows are far apart its place in the cache is also that of these.
    for (int k = 0; k < kInt8Steps; ++k) __builtin_prefetch(b.ahead[k] + line, 0, 3);
  }
}

// One row of A, whose steps have the same scales: its elements and the pointers stay in registers.
template <class V, Rounding kRounding>
inline void one_row(const Int8Block& b) {
  static_assert(kInt8Steps == 8);
  const int8_t* const w[] = {b.w[0], b.w[1], b.w[2], b.w[3], b.w[4], b.w[5], b.w[6], b.w[7]};
  const V x[] = {V::set1(b.x[0]), V::set1(b.x[1]), V::set1(b.x[2]), V::set1(b.x[3]),
                 V::set1(b.x[4]), V::set1(b.x[5]), V::set1(b.x[6]), V::set1(b.x[7])};
  const float *scales = b.scales[0], *larger = scales + b.larger;
  float *even = b.even, *odd = b.odd;
  const int64_t count = b.columns;
  const int8_t* const* ahead = b.ahead;
  for (int64_t line = 0; line < count; line += kLine) {
    const int64_t end = line + kLine < count ? line + kLine : count;
    for (int64_t n = line; n < end; n += V::kWidth) {
      const V s = V::load(scales + n), l = kRounding == Rounding::kBf16Usual ? V::load(larger + n) : s;
      V e = V::load(even + n), o = V::load(odd + n);
#pragma GCC unroll 8
      for (int k = 0; k < kInt8Steps; k += 2) {
        e = V::fma(x[k], weights<V, kRounding>(w[k] + n, s, l), e);
        o = V::fma(x[k + 1], weights<V, kRounding>(w[k + 1] + n, s, l), o);
      }
      e.store(even + n);
      o.store(odd + n);
    }
    // Into the second cache: the first is full of chains and scales.
    for (int k = 0; k < kInt8Steps; ++k) __builtin_prefetch(ahead[k] + line, 0, 2);
  }
}

template <class V, Rounding kRounding>
inline void block(const Int8Block& b, int steps) {
  if (b.same_scales)
    b.rows == 1 ? strip<V, kRounding, true, true>(b, steps) : strip<V, kRounding, true, false>(b, steps);
  else
    b.rows == 1 ? strip<V, kRounding, false, true>(b, steps) : strip<V, kRounding, false, false>(b, steps);
}

template <class V>
void f32_steps(const Int8Block& b, int steps) {
  if (steps == kInt8Steps) return block<V, Rounding::kNone>(b, kInt8Steps);
  block<V, Rounding::kNone>(b, steps);
}

template <class V, Rounding kRounding>
void bf16_steps(const Int8Block& b) {
  if (b.same_scales && b.rows == 1) return one_row<V, kRounding>(b);
  block<V, kRounding>(b, kInt8Steps);
}

template <class V>
void end_group(float* even, float* odd, float* c, int64_t count) {
  for (int64_t i = 0; i < count; i += V::kWidth) {
    (V::load(c + i) + (V::load(even + i) + V::load(odd + i))).store(c + i);
    V::zero().store(even + i);
    V::zero().store(odd + i);
  }
}

template <class V>
constexpr Int8Kernel int8_kernel() {
  return {V::kWidth, f32_steps<V>, bf16_steps<V, Rounding::kBf16>, bf16_steps<V, Rounding::kBf16Usual>,
          end_group<V>};
}

}  // namespace
}  // namespace ostro::kernels
