// LinearCase, AttentionCase: the cases of the kernel benchmarks: the three products of a linear layer, and
// causal attention, on fixed data that the peers make too (bench/peers/torch_kernels.py).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/kernels/attention/attention.h"
#include "ostro/products/gemm.h"

namespace ostro::bench {

// Values in [-1, 1); bf16 is the upper half of them. Another `seed` is another array.
inline AlignedBytes fixed_values(int64_t count, bool bf16, uint32_t seed) {
  AlignedBytes bytes = allocate_aligned(static_cast<size_t>(count) * (bf16 ? 2 : 4));
  for (int64_t i = 0; i < count; ++i) {
    uint32_t hash = (static_cast<uint32_t>(i) + seed * 7919u) * 2654435761u;
    hash = (hash ^ hash >> 15) * 2246822519u;
    const float x = static_cast<float>(hash >> 8) * 0x1p-23f - 1.0f;
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const uint16_t high = static_cast<uint16_t>(bits >> 16);
    if (bf16)
      std::memcpy(bytes.get() + i * 2, &high, 2);
    else
      std::memcpy(bytes.get() + i * 4, &bits, 4);
  }
  return bytes;
}

inline std::vector<int64_t> steps(int64_t count, int64_t stride) {
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) offsets[static_cast<size_t>(i)] = i * stride;
  return offsets;
}

// A product of a linear layer with W stored [out, in].
struct LinearCase {
  kernels::GemmSpec spec;
  int64_t a, b, c;  // elements
  bool prepacked;   // B is W, packed beforehand
};

// `layout`: fwd Y = X W^T, dgrad dX = dY W, or wgrad dW = dY^T X. Y and dX have the operands' type, dW is
// f32.
inline LinearCase linear_case(const std::string& layout, int64_t tokens, int64_t out, int64_t in,
                              kernels::GemmType type) {
  LinearCase l;
  l.spec.in = type;
  const int64_t x = tokens * in, w = in * out, y = tokens * out;
  if (layout == "fwd") {
    l.spec.a_row = steps(tokens, in), l.spec.a_col = steps(in, 1);
    l.spec.b_row = steps(in, 1), l.spec.b_col = steps(out, in);
    l.spec.c_row = steps(tokens, out), l.spec.c_col = steps(out, 1);
    l.a = x, l.b = w, l.c = y;
  } else if (layout == "dgrad") {
    l.spec.a_row = steps(tokens, out), l.spec.a_col = steps(out, 1);
    l.spec.b_row = steps(out, in), l.spec.b_col = steps(in, 1);
    l.spec.c_row = steps(tokens, in), l.spec.c_col = steps(in, 1);
    l.a = y, l.b = w, l.c = x;
  } else {
    l.spec.a_row = steps(out, 1), l.spec.a_col = steps(tokens, out);
    l.spec.b_row = steps(tokens, in), l.spec.b_col = steps(in, 1);
    l.spec.c_row = steps(out, in), l.spec.c_col = steps(in, 1);
    l.a = y, l.b = x, l.c = w;
  }
  l.prepacked = layout != "wgrad";
  l.spec.out = l.prepacked ? type : kernels::GemmType::kF32;
  return l;
}

// Causal attention of one example, all arrays [pos, heads, head_dim]; the gradient of the output is fixed
// data too.
class AttentionCase {
 public:
  AttentionCase(int64_t heads, int64_t head_dim, int64_t length, machine::FloatType type)
      : count_(heads * head_dim * length) {
    const bool bf16 = type == machine::FloatType::kBf16;
    for (uint32_t i = 0; i < 4; ++i) in_[i] = fixed_values(count_, bf16, i);
    for (auto& array : out_) array = fixed_values(count_, false, 9);
    m_.resize(static_cast<size_t>(length * heads));
    r_.resize(m_.size());
    kernels::AttentionForward& f = forward;
    f.shape = {.batch = 1,
               .pos = length,
               .key_pos = length,
               .kv_heads = heads,
               .group = 1,
               .head_dim = head_dim,
               .type = type,
               .scale = head_dim == 64 ? 0.125f : 0.08838835f,
               .mask = {.causal = true}};
    f.q = in_[0].get(), f.k = in_[1].get(), f.v = in_[2].get(), f.out = out_[0].get();
    f.out_type = type;
    f.m = m_.data(), f.r = r_.data();
    f.q_strides = f.out_strides = {count_, heads * head_dim, head_dim, head_dim};
    f.k_strides = f.v_strides = {count_, heads * head_dim, head_dim};
    kernels::AttentionBackward& b = backward;
    b.shape = f.shape;
    b.q = f.q, b.k = f.k, b.v = f.v, b.out = f.out, b.dout = in_[3].get();
    b.out_type = b.grad_type = type;
    b.m = f.m, b.r = f.r;
    b.dq = out_[1].get(), b.dk = out_[2].get(), b.dv = out_[3].get();
    b.q_strides = b.out_strides = b.dout_strides = b.dq_strides = f.q_strides;
    b.k_strides = b.v_strides = b.dk_strides = b.dv_strides = f.k_strides;
  }
  AttentionCase(const AttentionCase&) = delete;

  int64_t count() const { return count_; }

  kernels::AttentionForward forward;
  kernels::AttentionBackward backward;  // of what `forward` leaves behind

 private:
  int64_t count_;
  AlignedBytes in_[4], out_[4];
  std::vector<float> m_, r_;
};

}  // namespace ostro::bench
