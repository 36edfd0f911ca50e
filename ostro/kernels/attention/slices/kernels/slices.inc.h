// kSliceKernels: the functions of SliceKernels as plain loops, which a compiler turns into the vectors of the
// file that includes this. What loops read beside their arrays is copied first, as a store could change it.
#pragma once

#include <cstdint>

#include "ostro/kernels/attention/slices/kernels/slice_kernels.h"
#include "ostro/machine/vector/tanh.inc.h"

namespace ostro::kernels {
namespace {

// x + kToInteger rounds |x| < 2^22 to nearest even; the integer is then in the low bits of the sum.
constexpr float kToInteger = 0x1.8p23f;

inline uint32_t slice_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float slice_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t magnitude(float x) { return slice_bits(x) & 0x7fffffffu; }

// E of N9, for (x - y) * kappa <= 0 or NaN.
inline float exp2_lane(float x, float y, float kappa) {
  const float t = (x - y) * kappa;
  const float shifted = t + kToInteger, n = shifted - kToInteger, f = t - n;
  float p = __builtin_fmaf(0x1.5bd97cp-10f, f, 0x1.3ce8b2p-7f);
  p = __builtin_fmaf(p, f, 0x1.c6b6dap-5f);
  p = __builtin_fmaf(p, f, 0x1.ebf9c2p-3f);
  p = __builtin_fmaf(p, f, 0x1.62e42ap-1f);
  p = __builtin_fmaf(p, f, 1.0f);
  const float e = p * slice_float((slice_bits(shifted) << 23) + 0x3f800000u);
  return t < -126.0f ? 0.0f : e;
}

// The scale of a row whose largest magnitude has these bits, and what its numbers are multiplied with.
struct SliceScale {
  float scale, inverse;
};
inline SliceScale slice_scale(uint32_t largest) {
  uint32_t e = largest >> 23;
  e = e < 14 ? 14 : e;                               // -113 + 127
  e += largest > ((e << 23) | 0x7e0000u) ? 1u : 0u;  // above 127 scales
  const bool none = largest < 0x00800000u, finite = largest < 0x7f800000u;
  const float scale = slice_float((e - 6) << 23), inverse = slice_float((260 - e) << 23);
  return {none ? 0.0f : finite ? scale : slice_float(0x7fc00000u), none || !finite ? 0.0f : inverse};
}

// t of N21 as sums whose low bits are the slices.
struct SliceSums {
  float high, low;
};
inline SliceSums slice_sums(float t) {
  const float high = t + kToInteger;
  return {high, (t - (high - kToInteger)) * 128.0f + kToInteger};
}

template <bool kBf16>
float slice_row_of(const void* x, int64_t n, int8_t* __restrict high, int8_t* __restrict low) {
  const auto at = [&](int64_t i) {
    if constexpr (kBf16)
      return slice_float(uint32_t{static_cast<const uint16_t*>(x)[i]} << 16);
    else
      return static_cast<const float*>(x)[i];
  };
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = magnitude(at(i));
    largest = bits > largest ? bits : largest;
  }
  const SliceScale s = slice_scale(largest);
  for (int64_t i = 0; i < n; ++i) {
    const SliceSums sums = slice_sums(s.inverse == 0 ? 0.0f : at(i) * s.inverse);
    high[i] = static_cast<int8_t>(slice_bits(sums.high));
    low[i] = static_cast<int8_t>(slice_bits(sums.low));
  }
  return s.scale;
}

float slice_any_row(const void* x, bool bf16, int64_t n, int8_t* high, int8_t* low) {
  return bf16 ? slice_row_of<true>(x, n, high, low) : slice_row_of<false>(x, n, high, low);
}

template <int kLanes>
void softmax_of(const SoftmaxBlock& b) {
  if (b.of.soft_cap > 0) machine::cap_scores(b.s, b.keys * kLanes, b.of.scale, b.of.soft_cap);
  const float kappa = b.of.kappa;
  float top[kLanes], sum[kLanes];
  for (int i = 0; i < kLanes; ++i) top[i] = b.m[i];
  for (int64_t j = 0; j < b.keys; ++j) {
    const float* s = b.s + j * kLanes;
    const uint32_t word = b.words[j];
    for (int i = 0; i < kLanes; ++i) {
      const float x = (word >> i & 1) != 0 ? s[i] : top[i];
      top[i] = x > top[i] ? x : top[i];
    }
  }
  for (int i = 0; i < kLanes; ++i) {
    b.c[i] = exp2_lane(b.m[i], top[i], kappa);
    sum[i] = b.l[i] * b.c[i];
  }
  for (int64_t j = 0; j < b.keys; ++j) {
    float* s = b.s + j * kLanes;
    const uint32_t word = b.words[j];
    for (int i = 0; i < kLanes; ++i) {
      const float e = exp2_lane(s[i], top[i], kappa);
      s[i] = (word >> i & 1) != 0 ? e : 0.0f;
    }
    for (int i = 0; i < kLanes; ++i) sum[i] = sum[i] + s[i];
  }
  for (int i = 0; i < kLanes; ++i) {
    b.m[i] = top[i];
    b.l[i] = sum[i];
  }
}

template <int kLanes>
void gradients_of(const GradientBlock& b) {
  const float kappa = b.of.kappa, cap = b.of.soft_cap;
  float m[kLanes], r[kLanes], delta[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    m[i] = b.m[i];
    r[i] = b.r[i];
    delta[i] = b.delta[i];
  }
  if (cap > 0) machine::tanh_of_scores(b.s, b.room, b.keys * kLanes, b.of.scale, cap);
  for (int64_t j = 0; j < b.keys; ++j) {
    float *s = b.s + j * kLanes, *dp = b.dp + j * kLanes;
    const uint32_t word = b.words[j];
    const float* t = cap > 0 ? b.room + j * kLanes : nullptr;
    if (t != nullptr)
      for (int i = 0; i < kLanes; ++i) s[i] = cap * t[i];
    float p[kLanes], ds[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      p[i] = exp2_lane(s[i], m[i], kappa) * r[i];
      ds[i] = p[i] * (dp[i] - delta[i]);
    }
    if (t != nullptr)
      for (int i = 0; i < kLanes; ++i) ds[i] = ds[i] * (1.0f - t[i] * t[i]);
    float *to_p = b.p + j * kSliceBlock, *to_ds = b.ds + j * kSliceBlock;
    for (int i = 0; i < kLanes; ++i) {
      const bool seen = (word >> i & 1) != 0;
      to_p[i] = seen ? p[i] : 0.0f;
      dp[i] = to_ds[i] = seen ? ds[i] : 0.0f;
    }
  }
}

template <int kLanes, int kNumbers>
void lane_weights_of(const LaneWeights& b) {
  constexpr int kBits = 32 / kNumbers;
  constexpr uint32_t kMask = kNumbers == 4 ? 0xffu : 0xffffu;
  constexpr int64_t kWords = kSliceBlock / kNumbers;
  const uint32_t flip = b.flip;
  uint32_t largest[kLanes] = {};
  for (int64_t j = 0; j < b.keys; ++j) {
    float* w = b.w + j * kLanes;
    const float factor = b.factors[j];
    for (int i = 0; i < kLanes; ++i) {
      w[i] = w[i] * factor;
      const uint32_t bits = magnitude(w[i]);
      largest[i] = bits > largest[i] ? bits : largest[i];
    }
  }
  for (int64_t i = b.keys * kLanes; i < kSliceBlock * kLanes; ++i) b.w[i] = 0;
  auto* first = static_cast<uint32_t*>(b.out);
  auto* scales = reinterpret_cast<float*>(first + kWords * kLanes);
  auto* second = reinterpret_cast<uint32_t*>(scales + kLanes);
  auto* again = reinterpret_cast<float*>(second + 2 * kWords * kLanes);
  float inverse[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const SliceScale s = slice_scale(largest[i]);
    scales[i] = again[i] = s.scale;
    inverse[i] = s.inverse;
  }
  for (int64_t g = 0; g < kWords; ++g) {
    uint32_t high[kLanes] = {}, low[kLanes] = {};
    for (int k = 0; k < kNumbers; ++k) {
      const float* w = b.w + (g * kNumbers + k) * kLanes;
      for (int i = 0; i < kLanes; ++i) {
        const SliceSums sums = slice_sums(w[i] * inverse[i]);
        high[i] |= (slice_bits(sums.high) & kMask) << (k * kBits);
        low[i] |= (slice_bits(sums.low) & kMask) << (k * kBits);
      }
    }
    for (int i = 0; i < kLanes; ++i) {
      first[g * kLanes + i] = second[(kWords + g) * kLanes + i] = high[i] ^ flip;
      second[g * kLanes + i] = low[i] ^ flip;
    }
  }
}

void row_weights_of(const RowWeights& b) {
  for (int64_t row = 0; row < b.rows; ++row) {
    const float* from = b.w + row * kSliceBlock;
    float w[kSliceBlock];
    uint32_t largest = 0;
    for (int64_t i = 0; i < kSliceBlock; ++i) {
      w[i] = from[i] * b.factors[i];
      const uint32_t bits = magnitude(w[i]);
      largest = bits > largest ? bits : largest;
    }
    int8_t* q = b.q + row * 2 * kSliceBlock;
    const SliceScale s = slice_scale(largest);
    for (int64_t i = 0; i < kSliceBlock; ++i) {
      const SliceSums sums = slice_sums(w[i] * s.inverse);
      q[i] = static_cast<int8_t>(slice_bits(sums.high));
      q[kSliceBlock + i] = static_cast<int8_t>(slice_bits(sums.low));
    }
    b.scales[row] = s.scale;
  }
}

void softmax_block(const SoftmaxBlock& b) { b.lanes == 16 ? softmax_of<16>(b) : softmax_of<32>(b); }

void gradient_block(const GradientBlock& b) { b.lanes == 16 ? gradients_of<16>(b) : gradients_of<32>(b); }

void lane_weights_block(const LaneWeights& b) {
  if (b.lanes == 16)
    b.bytes ? lane_weights_of<16, 4>(b) : lane_weights_of<16, 2>(b);
  else
    b.bytes ? lane_weights_of<32, 4>(b) : lane_weights_of<32, 2>(b);
}

constexpr SliceKernels kSliceKernels = {.slice = slice_any_row,
                                        .softmax = softmax_block,
                                        .gradients = gradient_block,
                                        .lane_weights = lane_weights_block,
                                        .row_weights = row_weights_of};

}  // namespace
}  // namespace ostro::kernels
