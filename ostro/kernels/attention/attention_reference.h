// reference::forward, reference::backward: attention as docs/spec/numerics.md, N9, defines it, one output at
// a time; a masked key takes part with p = +0. For tests: they share no code with the kernels and keep the
// whole matrix of scores.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/kernels/attention/attention.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/dots.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"
#include "ostro/numerics/tree.h"

namespace ostro::kernels::reference {

inline float element(const void* data, machine::FloatType type, int64_t i) {
  if (type == machine::FloatType::kF32) return static_cast<const float*>(data)[i];
  return numerics::to_f32(numerics::Bf16{static_cast<const uint16_t*>(data)[i]});
}
inline void set_element(void* data, machine::FloatType type, int64_t i, float x) {
  if (type == machine::FloatType::kF32)
    static_cast<float*>(data)[i] = x;
  else
    static_cast<uint16_t*>(data)[i] = numerics::to_bf16(x).bits;
}

inline bool attends(const AttentionShape& s, int64_t b, int64_t row, int64_t key) {
  const AttentionMask& m = s.mask;
  const int64_t p = (s.query_origin != nullptr ? s.query_origin[b] : 0) + row;
  if (m.key_length != nullptr && key >= m.key_length[b]) return false;
  if (m.causal && key > p && (m.prefix_length == nullptr || key >= m.prefix_length[b])) return false;
  if (m.window > 0 && key <= p - m.window) return false;
  if (m.query_segments != nullptr &&
      m.query_segments[b * m.query_segment_stride + row] != m.key_segments[b * m.key_segment_stride + key])
    return false;
  return m.visible == nullptr || m.visible[(b * s.pos + row) * s.key_pos + key] != 0;
}

template <typename A, typename B>
float dot(machine::FloatType type, int64_t n, A&& a, B&& b, float initial = 0.0f) {
  return type == machine::FloatType::kF32 ? numerics::dot_f32(n, a, b, initial)
                                          : numerics::dot_bf16(n, a, b, initial);
}
inline float rounded(machine::FloatType type, float x) {
  return type == machine::FloatType::kF32 ? x : numerics::round_to_bf16(x);
}

inline int64_t at(const QueryStrides& st, int64_t b, int64_t i, int64_t h, int64_t g) {
  return b * st.batch + i * st.pos + h * st.kv_head + g * st.group;
}
inline int64_t at(const KeyStrides& st, int64_t b, int64_t j, int64_t h) {
  return b * st.batch + j * st.pos + h * st.kv_head;
}

// The score of one query and key after the soft cap; t is the cap's tanh.
inline float score(const AttentionShape& s, const void* q, int64_t qa, const void* k, int64_t ka, float* t) {
  float x = dot(
      s.type, s.head_dim, [&](int64_t d) { return element(q, s.type, qa + d); },
      [&](int64_t d) { return element(k, s.type, ka + d); });
  *t = 0;
  if (s.soft_cap > 0) {
    *t = numerics::tanh_f32((x * s.scale) / s.soft_cap);
    x = s.soft_cap * *t;
  }
  return x;
}

inline float kappa(const AttentionShape& s) {
  return s.soft_cap > 0 ? numerics::kLog2e
                        : static_cast<float>(static_cast<double>(s.scale) * 0x1.71547652b82fep+0);
}
inline float first_maximum(const AttentionShape& s, int64_t head) {
  if (s.sink == nullptr) return -1e30f;
  return s.soft_cap > 0 ? s.sink[head] : s.sink[head] / s.scale;
}

inline void forward(const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  for (int64_t row = 0; row < s.batch * s.pos * s.kv_heads * s.group; ++row) {
    const int64_t g = row % s.group, h = row / s.group % s.kv_heads;
    const int64_t i = row / s.group / s.kv_heads % s.pos, b = row / s.group / s.kv_heads / s.pos;
    float m = first_maximum(s, h * s.group + g), l = s.sink != nullptr ? 1.0f : 0.0f;
    std::vector<float> acc(static_cast<size_t>(s.head_dim), 0.0f);
    bool any = s.sink != nullptr;
    for (int64_t block = 0; block < s.key_pos; block += 128) {
      const int64_t n = std::min<int64_t>(128, s.key_pos - block);
      float x[128], p[128];
      float top = m;
      for (int64_t j = 0; j < n; ++j) {
        float t;
        x[j] = score(s, a.q, at(a.q_strides, b, i, h, g), a.k, at(a.k_strides, b, block + j, h), &t);
        if (!attends(s, b, i, block + j)) continue;
        any = true;
        if (x[j] > top) top = x[j];
      }
      const float c = numerics::exp2_block(m, top, kappa(s));
      l = l * c;
      for (float& o : acc) o = o * c;
      for (int64_t j = 0; j < n; ++j) {
        p[j] = attends(s, b, i, block + j) ? numerics::exp2_block(x[j], top, kappa(s)) : 0.0f;
        l = l + p[j];
        p[j] = rounded(s.type, p[j]);
      }
      for (int64_t d = 0; d < s.head_dim; ++d)
        acc[d] = dot(
            s.type, n, [&](int64_t j) { return p[j]; },
            [&](int64_t j) { return element(a.v, s.type, at(a.v_strides, b, block + j, h) + d); }, acc[d]);
      m = top;
    }
    a.m[row] = m + 0.0f;
    a.r[row] = any ? 1.0f / l : 0.0f;
    for (int64_t d = 0; d < s.head_dim; ++d)
      set_element(a.out, a.out_type, at(a.out_strides, b, i, h, g) + d,
                  any ? (acc[d] + 0.0f) * a.r[row] : 0.0f);
  }
}

inline void backward(const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  std::vector<int64_t> ends(a.query_leaf_ends.begin(), a.query_leaf_ends.end());
  if (ends.empty()) ends.push_back(s.pos);
  const int64_t heads = s.kv_heads * s.group;
  std::vector<float> delta(static_cast<size_t>(s.batch * s.pos * heads));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.kv_heads; ++h) {
      const int64_t origin = s.query_origin != nullptr ? s.query_origin[b] : 0;
      const auto cell = [&](int64_t g, int64_t i, int64_t j) { return (g * s.pos + i) * s.key_pos + j; };
      std::vector<float> p(static_cast<size_t>(s.group * s.pos * s.key_pos)), ds(p.size());
      for (int64_t g = 0; g < s.group; ++g)
        for (int64_t i = 0; i < s.pos; ++i) {
          const int64_t row = ((b * s.pos + i) * s.kv_heads + h) * s.group + g;
          const int64_t da = at(a.dout_strides, b, i, h, g), oa = at(a.out_strides, b, i, h, g);
          delta[row] = numerics::striped_sum<float>(s.head_dim, [&](int64_t d) {
            return element(a.dout, s.type, da + d) * element(a.out, a.out_type, oa + d);
          });
          for (int64_t j = 0; j < s.key_pos; ++j) {
            if (!attends(s, b, i, j)) continue;
            float t;
            const float x = score(s, a.q, at(a.q_strides, b, i, h, g), a.k, at(a.k_strides, b, j, h), &t);
            const float pj = numerics::exp2_block(x, a.m[row], kappa(s)) * a.r[row];
            const float dp = dot(
                s.type, s.head_dim, [&](int64_t d) { return element(a.dout, s.type, da + d); },
                [&](int64_t d) { return element(a.v, s.type, at(a.v_strides, b, j, h) + d); });
            float dsj = pj * (dp - delta[row]);
            if (s.soft_cap > 0) dsj = dsj * (1.0f - t * t);
            p[cell(g, i, j)] = rounded(s.type, pj);
            ds[cell(g, i, j)] = rounded(s.type, dsj);
          }
          for (int64_t d = 0; d < s.head_dim; ++d) {
            const float dq = dot(
                s.type, s.key_pos, [&](int64_t j) { return ds[cell(g, i, j)]; },
                [&](int64_t j) { return element(a.k, s.type, at(a.k_strides, b, j, h) + d); });
            set_element(a.dq, a.grad_type, at(a.dq_strides, b, i, h, g) + d, dq * s.scale + 0.0f);
          }
        }
      for (int64_t j = 0; j < s.key_pos; ++j)
        for (int64_t d = 0; d < s.head_dim; ++d) {
          std::vector<float> dks, dvs;
          int64_t begin = 0;
          for (int64_t end : ends) {
            // Groups of 32 by absolute position: rows of other leaves count as +0.
            const int64_t start = (origin + begin) / 32 * 32 - origin;
            float dk = 0, dv = 0;
            for (int64_t g = 0; g < s.group; ++g) {
              const auto chain = [&](const std::vector<float>& x, const void* y, const QueryStrides& st,
                                     float acc) {
                return dot(
                    s.type, end - start,
                    [&](int64_t i) { return start + i < begin ? 0.0f : x[cell(g, start + i, j)]; },
                    [&](int64_t i) {
                      return start + i < begin ? 0.0f : element(y, s.type, at(st, b, start + i, h, g) + d);
                    },
                    acc);
              };
              if (begin < end) {
                dk = chain(ds, a.q, a.q_strides, dk);
                dv = chain(p, a.dout, a.dout_strides, dv);
              }
            }
            dks.push_back(dk);
            dvs.push_back(dv);
            begin = end;
          }
          set_element(a.dk, a.grad_type, at(a.dk_strides, b, j, h) + d,
                      numerics::tree_sum<float>(dks) * s.scale + 0.0f);
          set_element(a.dv, a.grad_type, at(a.dv_strides, b, j, h) + d,
                      numerics::tree_sum<float>(dvs) + 0.0f);
        }
    }
  if (s.sink == nullptr) return;
  for (int64_t head = 0; head < heads; ++head) {
    std::vector<float> partials;
    int64_t begin = 0;
    for (int64_t end : ends) {
      float sum = 0;
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = (b * s.pos + i) * heads + head;
          const float p = numerics::exp2_block(first_maximum(s, head), a.m[row], kappa(s)) * a.r[row];
          sum = sum + -(p * delta[row]);
        }
      partials.push_back(sum);
      begin = end;
    }
    a.dsink[head] = numerics::tree_sum<float>(partials);
  }
}

}  // namespace ostro::kernels::reference
