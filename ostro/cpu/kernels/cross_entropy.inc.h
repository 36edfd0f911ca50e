// Cross-entropy of rows over a vector type V.
#pragma once

#include "ostro/cpu/kernels/cross_entropy_kernels.h"
#include "ostro/cpu/kernels/exp2.inc.h"
#include "ostro/cpu/kernels/striped.inc.h"
#include "ostro/numerics/functions.h"

namespace ostro::cpu::kernels {

template <class V>
inline float row_maximum(const float* x, int64_t n) {
  constexpr int kW = V::kWidth;
  float best = x[0];
  int64_t i = 0;
  if (n >= 4 * kW) {  // any order: four chains hide the latency
    V top[4];
    for (int v = 0; v < 4; ++v) top[v] = V::load(x + v * kW);
    for (i = 4 * kW; i + 4 * kW <= n; i += 4 * kW)
      for (int v = 0; v < 4; ++v) top[v] = V::max(V::load(x + i + v * kW), top[v]);
    float lanes[kW];
    V::max(V::max(top[0], top[1]), V::max(top[2], top[3])).store(lanes);
    for (float lane : lanes) best = lane > best ? lane : best;
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best + 0.0f;  // which of -0 and +0 won must not show in the saved value
}

// striped_sum(E(x, m)) of one leaf.
template <class V>
inline float exponential_sum(const float* x, int64_t n, float m) {
  constexpr int kW = V::kWidth, kVectors = 64 / kW;
  const V kappa = V::set1(numerics::kLog2e), top = V::set1(m);
  V acc[kVectors];
  for (V& a : acc) a = V::zero();
  int64_t r = 0;
  for (; r + 64 <= n; r += 64)
    for (int v = 0; v < kVectors; ++v) acc[v] = acc[v] + exp2_below<V>(V::load(x + r + v * kW), top, kappa);
  if (r < n) {
    // Missing elements add E(-inf, m) = +0, which changes no sum of numbers >= 0.
    float rest[64];
    for (int i = 0; i < 64; ++i) rest[i] = r + i < n ? x[r + i] : -__builtin_inff();
    for (int v = 0; v < kVectors; ++v) acc[v] = acc[v] + exp2_below<V>(V::load(rest + v * kW), top, kappa);
  }
  float lanes[64];
  for (int v = 0; v < kVectors; ++v) acc[v].store(lanes + v * kW);
  return combine_stripes<V>(lanes);
}

// The tree of N8 over the leaves [first, first + count), whose bounds are ends (none: one leaf of n).
template <class V>
inline float exponential_tree(const CrossEntropyForward& a, const float* x, float m, int64_t first,
                              int64_t count) {
  if (a.vocab_leaf_ends.empty()) return exponential_sum<V>(x, a.vocab, m);
  if (count == 1) {
    const int64_t begin = first == 0 ? 0 : a.vocab_leaf_ends[static_cast<size_t>(first - 1)];
    return exponential_sum<V>(x + begin, a.vocab_leaf_ends[static_cast<size_t>(first)] - begin, m);
  }
  int64_t left = 1;
  while (left * 2 < count) left *= 2;
  const float low = exponential_tree<V>(a, x, m, first, left);
  return low + exponential_tree<V>(a, x, m, first + left, count - left);
}

template <class V>
void cross_entropy_forward_rows(const CrossEntropyForward& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.logits + row * a.row_stride;
    const float m = row_maximum<V>(x, a.vocab);
    const float l = exponential_tree<V>(a, x, m, 0, static_cast<int64_t>(a.vocab_leaf_ends.size()));
    const float lse = m + numerics::log_f32(l);
    const int32_t target = a.targets[row];
    const float logit = target >= 0 && target < a.vocab ? x[target] : 0.0f;
    float loss = lse - logit;
    if (a.z != 0) loss = loss + (a.z * lse) * lse;
    a.loss[row] = loss;
    a.m[row] = m;
    a.r[row] = 1.0f / l;
    a.lse[row] = lse;
  }
}

template <class V>
void cross_entropy_backward_rows(const CrossEntropyBackward& a, int64_t begin, int64_t end) {
  constexpr int kW = V::kWidth;
  const V kappa = V::set1(numerics::kLog2e);
  const bool narrow = a.dlogits_type == FloatType::kBf16;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.logits + row * a.row_stride;
    const float w = a.w[row];
    float slope = w;
    if (a.z != 0) slope = w + ((2.0f * a.z) * w) * a.lse[row];
    const V m = V::set1(a.m[row]), r = V::set1(a.r[row]), factor = V::set1(slope);
    // w * onehot is a selection: subtracted at the target alone.
    const auto product_at = [&](V logits) { return (exp2_below<V>(logits, m, kappa) * r) * factor; };

    // The target's logit, before an output in place overwrites it.
    const int32_t target = a.targets[row];
    const bool inside = target >= 0 && target < a.vocab;
    float lanes[kW] = {};
    if (inside) (product_at(V::set1(x[target])) - V::set1(w)).store(lanes);
    const float at_target = lanes[0];

    float* wide = static_cast<float*>(a.dlogits) + (narrow ? 0 : row * a.dlogits_stride);
    uint16_t* half = static_cast<uint16_t*>(a.dlogits) + (narrow ? row * a.dlogits_stride : 0);
    int64_t i = 0;
    for (; i + kW <= a.vocab; i += kW) {
      const V y = product_at(V::load(x + i));
      if (narrow)
        y.store_bf16(half + i);
      else
        y.store(wide + i);
    }
    uint16_t half_lanes[kW];
    if (i < a.vocab) {
      for (int j = 0; j < kW; ++j) lanes[j] = i + j < a.vocab ? x[i + j] : a.m[row];
      const V y = product_at(V::load(lanes));
      y.store(lanes);
      y.store_bf16(half_lanes);
      for (int j = 0; i + j < a.vocab; ++j) {
        if (narrow)
          half[i + j] = half_lanes[j];
        else
          wide[i + j] = lanes[j];
      }
    }
    if (inside) {
      V::set1(at_target).store_bf16(half_lanes);
      if (narrow)
        half[target] = half_lanes[0];
      else
        wide[target] = at_target;
    }
  }
}

template <class V>
inline CrossEntropyKernels cross_entropy_table() {
  return {cross_entropy_forward_rows<V>, cross_entropy_backward_rows<V>};
}

}  // namespace ostro::cpu::kernels
