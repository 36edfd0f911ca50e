// cross_entropy_table: the cross-entropy kernels over a vector type V (docs/spec/numerics.md, N11).
//
// cross_entropy.h describes the arguments, cross_entropy_kernels.h the functions of the table. All functions
// work row by row, and a row is independent of the others, so threads may do different rows at the same time.
// There are no errors.
#pragma once

#include "ostro/kernels/losses/kernels/cross_entropy_kernels.h"
#include "ostro/machine/vector/exp2.inc.h"
#include "ostro/machine/vector/striped.inc.h"
#include "ostro/numerics/functions.h"

namespace ostro::kernels {

// The maximum of a row of n >= 1 elements; +0 when it is a zero of either sign.
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

// The arithmetic of a row fills the reorder window, so without prefetch hints loads from memory hardly
// overlap with it. The hint is for L2: a row does not fit into L1.
inline void fetch_line(const float* x) { __builtin_prefetch(x, 0, 2); }

// The sum of N4 over the exponentials E(x, m) of one leaf with n elements. Writes the exponentials to `kept`,
// unless that is null. Meanwhile n / 2 floats at `ahead` are prefetched.
template <class V>
inline float exponential_sum(const float* x, int64_t n, float m, float* kept, const float* ahead) {
  constexpr int kW = V::kWidth, kVectors = 64 / kW;
  const V kappa = V::set1(numerics::kLog2e), top = V::set1(m);
  V acc[kVectors];
  for (V& a : acc) a = V::zero();
  int64_t r = 0;
  for (; r + 64 <= n; r += 64) {
    fetch_line(ahead + r / 2);
    fetch_line(ahead + r / 2 + 16);
    for (int v = 0; v < kVectors; ++v) {
      const V e = machine::exp2_below<V>(V::load(x + r + v * kW), top, kappa);
      if (kept != nullptr) e.store(kept + r + v * kW);
      acc[v] = acc[v] + e;
    }
  }
  if (r < n) {
    // Missing elements add E(-inf, m) = +0, which changes no sum of numbers >= 0.
    float rest[64];
    for (int i = 0; i < 64; ++i) rest[i] = r + i < n ? x[r + i] : -__builtin_inff();
    for (int v = 0; v < kVectors; ++v) {
      const V e = machine::exp2_below<V>(V::load(rest + v * kW), top, kappa);
      acc[v] = acc[v] + e;
      e.store(rest + v * kW);
    }
    for (int i = 0; kept != nullptr && r + i < n; ++i) kept[r + i] = rest[i];
  }
  float lanes[64];
  for (int v = 0; v < kVectors; ++v) acc[v].store(lanes + v * kW);
  return machine::combine_stripes<V>(lanes);
}

// The sum of exponentials over the leaves [first, first + count) of a row, joined in the tree of N8.
// a.vocab_leaf_ends has the end of each leaf; when it is empty, the whole row is one leaf.
template <class V>
inline float exponential_tree(const CrossEntropyForward& a, const float* x, float m, float* kept,
                              const float* ahead, int64_t first, int64_t count) {
  if (a.vocab_leaf_ends.empty()) return exponential_sum<V>(x, a.vocab, m, kept, ahead);
  if (count == 1) {
    const int64_t begin = first == 0 ? 0 : a.vocab_leaf_ends[static_cast<size_t>(first - 1)];
    return exponential_sum<V>(x + begin, a.vocab_leaf_ends[static_cast<size_t>(first)] - begin, m,
                              kept == nullptr ? nullptr : kept + begin, ahead + begin / 2);
  }
  int64_t left = 1;
  while (left * 2 < count) left *= 2;
  const float low = exponential_tree<V>(a, x, m, kept, ahead, first, left);
  return low + exponential_tree<V>(a, x, m, kept, ahead, first + left, count - left);
}

// Writes the loss and the saved values (m, r, lse) of one row, and its exponentials to `kept`, unless that is
// null.
template <class V>
inline void cross_entropy_forward_row(const CrossEntropyForward& a, int64_t row, float* kept) {
  const float* x = a.logits + row * a.row_stride;
  const float* next = row + 1 < a.rows ? x + a.row_stride : x;
  const float m = row_maximum<V>(x, a.vocab);
  const float l = exponential_tree<V>(a, x, m, kept, next, 0, static_cast<int64_t>(a.vocab_leaf_ends.size()));
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

template <class V>
void cross_entropy_forward_rows(const CrossEntropyForward& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) cross_entropy_forward_row<V>(a, row, nullptr);
}

// Writes the gradient of one row: first the products for all elements, then the element of the target.
// `exponentials` are those that the forward pass kept; null: compute them again. The forward pass has
// prefetched half of the next row; this function prefetches the other half.
template <class V>
inline void cross_entropy_backward_row(const CrossEntropyBackward& a, int64_t row,
                                       const float* exponentials) {
  constexpr int kW = V::kWidth;
  constexpr int64_t kAhead = 1024;  // elements: far enough for memory's latency
  const V kappa = V::set1(numerics::kLog2e);
  const bool narrow = a.dlogits_type == machine::FloatType::kBf16, again = exponentials == nullptr;
  const float* x = again ? a.logits + row * a.row_stride : exponentials;
  const float* ahead = a.logits + (row + 1 < a.rows ? row + 1 : row) * a.row_stride + a.vocab / 2;
  const float w = a.w[row];
  float slope = w;
  if (a.z != 0) slope = w + ((2.0f * a.z) * w) * a.lse[row];
  const V m = V::set1(a.m[row]), r = V::set1(a.r[row]), factor = V::set1(slope);
  const auto product_at = [&](V v) {
    return ((again ? machine::exp2_below<V>(v, m, kappa) : v) * r) * factor;
  };

  // w * onehot is a selection: subtracted at the target alone. The target's logit is read before an output in
  // place overwrites it.
  const int32_t target = a.targets[row];
  const bool inside = target >= 0 && target < a.vocab;
  float lanes[kW] = {};
  if (inside) (product_at(V::set1(x[target])) - V::set1(w)).store(lanes);
  const float at_target = lanes[0];

  float* wide = static_cast<float*>(a.dlogits) + (narrow ? 0 : row * a.dlogits_stride);
  uint16_t* half = static_cast<uint16_t*>(a.dlogits) + (narrow ? row * a.dlogits_stride : 0);
  int64_t i = 0;
  for (; i + kW <= a.vocab; i += kW) {
    if (again)
      fetch_line(x + i + kAhead);
    else if (i % (2 * kW) == 0)
      fetch_line(ahead + i / 2);
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

template <class V>
void cross_entropy_backward_rows(const CrossEntropyBackward& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) cross_entropy_backward_row<V>(a, row, nullptr);
}

template <class V>
void cross_entropy_both_rows(const CrossEntropyForward& f, const CrossEntropyBackward& b, int64_t begin,
                             int64_t end, float* scratch) {
  for (int64_t row = begin; row < end; ++row) {
    cross_entropy_forward_row<V>(f, row, scratch);
    cross_entropy_backward_row<V>(b, row, scratch);
  }
}

template <class V>
void cross_entropy_sum_rows(const CrossEntropyForward& a, const float* m, float* sums, int64_t begin,
                            int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.logits + row * a.row_stride;
    const float* next = row + 1 < a.rows ? x + a.row_stride : x;
    sums[row] =
        exponential_tree<V>(a, x, m[row], nullptr, next, 0, static_cast<int64_t>(a.vocab_leaf_ends.size()));
  }
}

template <class V>
inline CrossEntropyKernels cross_entropy_table() {
  return {cross_entropy_forward_rows<V>, cross_entropy_backward_rows<V>, cross_entropy_both_rows<V>,
          cross_entropy_sum_rows<V>};
}

}  // namespace ostro::kernels
