// The blocks of int8_kernel.h for one vector type. Included by int8_*.cc alone.
#pragma once

#include "ostro/cpu/products/kernels/int8_kernel.h"

namespace ostro::cpu::kernels {
namespace {

constexpr int kVectors = 4;  // of columns: both chains of N7 then hide the latency of an fma

enum class Rounding { kNone, kBf16, kBf16Usual };

// To bf16 by an addition: beside 1.5 * 2^16 times the power of two below x, eight bits of x are left, rounded
// to the nearest, ties to even. Then it is taken away again. Both are exact but for that rounding.
template <class V>
inline V round_by_adding(V x) {
  const V large = V::masked_plus(x, 0x7f800000, (16 << 23) | 0x00400000);
  return (x + large) - large;
}

template <class V, Rounding kRounding>
inline V weight(const int8_t* w, const float* scale) {
  const V product = V::load_i8(w) * V::load(scale);
  if constexpr (kRounding == Rounding::kBf16) return V::round_bf16(product);
  if constexpr (kRounding == Rounding::kBf16Usual) return round_by_adding(product);
  return product;
}

// One row: the weights go from memory into the chains.
template <class V, Rounding kRounding>
void one_row(const Int8Block& b) {
  constexpr int kChains = kRounding == Rounding::kNone ? 1 : 2;
  V acc[kChains][kVectors];
  float* c = b.c + b.column;
  for (int i = 0; i < kVectors; ++i) {
    acc[0][i] = kChains == 1 ? V::load(c + i * V::kWidth) : V::zero();
    if constexpr (kChains == 2) acc[1][i] = V::zero();
  }
  const int64_t count = kChains == 1 ? b.count : kInt8Group;
  const int8_t* w = b.w + b.column;
  for (int64_t k = 0; k < count; k += kChains) {
#pragma GCC unroll 2
    for (int odd = 0; odd < kChains; ++odd) {
      const V x = V::set1(b.x[k + odd]);
      const float* scale = b.scales[k + odd] + b.column;
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i)
        acc[odd][i] = V::fma(x, weight<V, kRounding>(w + i * V::kWidth, scale + i * V::kWidth), acc[odd][i]);
      w += b.w_stride;
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    float* to = c + i * V::kWidth;
    if constexpr (kChains == 1)
      acc[0][i].store(to);
    else
      (V::load(to) + (acc[0][i] + acc[1][i])).store(to);
  }
}

// Several rows share the weights of the block, which stay in L1.
template <class V, Rounding kRounding>
void block(const Int8Block& b) {
  if (b.rows == 1) return one_row<V, kRounding>(b);
  constexpr int kChains = kRounding == Rounding::kNone ? 1 : 2;
  constexpr int kColumns = kVectors * V::kWidth;
  alignas(64) float weights[kInt8Group * kColumns];
  const int64_t count = kChains == 1 ? b.count : kInt8Group;
  for (int64_t k = 0; k < count; ++k)
    for (int i = 0; i < kColumns; i += V::kWidth)
      weight<V, kRounding>(b.w + k * b.w_stride + b.column + i, b.scales[k] + b.column + i)
          .store(weights + k * kColumns + i);
  for (int r = 0; r < b.rows; ++r) {
    float* c = b.c + r * b.c_stride + b.column;
    V acc[kChains][kVectors];
    for (int i = 0; i < kVectors; ++i) {
      acc[0][i] = kChains == 1 ? V::load(c + i * V::kWidth) : V::zero();
      if constexpr (kChains == 2) acc[1][i] = V::zero();
    }
    for (int64_t k = 0; k < count; k += kChains) {
#pragma GCC unroll 2
      for (int odd = 0; odd < kChains; ++odd) {
        const V x = V::set1(b.x[(k + odd) * b.rows + r]);
        const float* w = weights + (k + odd) * kColumns;
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) acc[odd][i] = V::fma(x, V::load(w + i * V::kWidth), acc[odd][i]);
      }
    }
    for (int i = 0; i < kVectors; ++i) {
      float* to = c + i * V::kWidth;
      if constexpr (kChains == 1)
        acc[0][i].store(to);
      else
        (V::load(to) + (acc[0][i] + acc[1][i])).store(to);
    }
  }
}

template <class V>
constexpr Int8Kernel int8_kernel() {
  return {kVectors * V::kWidth, block<V, Rounding::kNone>, block<V, Rounding::kBf16>,
          block<V, Rounding::kBf16Usual>};
}

}  // namespace
}  // namespace ostro::cpu::kernels
