// attention_backward_job: attention's backward pass of one job (attention_kernels.h).
//
// The loops go over key blocks, leaves, query heads and query tiles, each ascending. So dk and dv add up over
// queries and dq over keys in the required order, without scratch of size pos x key_pos. Lanes are keys for
// scores [query][key], and head_dim for dq, dk and dv.
#pragma once

#include "ostro/kernels/attention/kernels/attention_common.inc.h"
#include "ostro/machine/vector/exp2.inc.h"
#include "ostro/machine/vector/striped.inc.h"
#include "ostro/machine/vector/tile_product.inc.h"

namespace ostro::kernels {

template <class V>
struct ScoreGradients {
  V p, ds;
};

// P and dS of one query row and a vector of keys, before the mask, from their scores and dP; m, r and delta
// are the row's. tanh_of: of the capped scores, nullptr without a soft cap.
template <class V, bool kBf16>
inline ScoreGradients<V> score_gradients(V score, V dp, V m, V r, V delta, V kappa, const float* tanh_of) {
  V p = machine::exp2_below<V>(score, m, kappa) * r;
  V ds = p * (dp - delta);
  if (tanh_of != nullptr) {
    const V th = V::load(tanh_of);
    ds = ds * (V::set1(1.0f) - th * th);
  }
  if constexpr (kBf16) {
    p = V::round_bf16(p);
    ds = V::round_bf16(ds);
  }
  return {p, ds};
}

// The sum of N4 over products of two rows.
template <class V>
inline float striped_dot(const float* x, const float* y, int64_t n) {
  constexpr int kW = V::kWidth;
  V acc[64 / kW];
  for (V& lane : acc) lane = V::zero();
  int64_t r = 0;
  for (; r + 64 <= n; r += 64)
    for (int v = 0; v < 64 / kW; ++v) acc[v] = acc[v] + V::load(x + r + v * kW) * V::load(y + r + v * kW);
  float lanes[64];
  for (int v = 0; v < 64 / kW; ++v) acc[v].store(lanes + v * kW);
  for (; r < n; ++r) lanes[r % 64] = lanes[r % 64] + x[r] * y[r];
  return machine::combine_stripes<V>(lanes);
}

// delta of N9: the striped sum over head_dim of dO * O, for every head of rows [begin, end) of batch * pos.
template <class V, bool kBf16>
void attention_delta_rows(const AttentionBackward& a, int64_t begin, int64_t end, float* delta) {
  const AttentionShape& s = a.shape;
  float* buffer = delta + begin * s.kv_heads * s.group;  // advanced row by row
  float o[kMaxHeadDim], d[kMaxHeadDim];
  for (int64_t row = begin; row < end; ++row) {
    const int64_t b = row / s.pos, i = row % s.pos;
    for (int64_t h = 0; h < s.kv_heads; ++h)
      for (int64_t g = 0; g < s.group; ++g) {
        const auto at = [&](const QueryStrides& st) {
          return b * st.batch + i * st.pos + h * st.kv_head + g * st.group;
        };
        load_row<V, kBf16>(a.dout, at(a.dout_strides), s.head_dim, d);
        if (a.out_type == machine::FloatType::kBf16)
          load_row<V, true>(a.out, at(a.out_strides), s.head_dim, o);
        else
          load_row<V, false>(a.out, at(a.out_strides), s.head_dim, o);
        *buffer++ = striped_dot<V>(d, o, s.head_dim);
      }
  }
}

// The keys of a block that one query row attends to, one bit each.
struct KeyBits {
  uint64_t low, high;
};

template <class V>
inline KeyBits backward_bits(const ExampleMask& m, int64_t row, Range block, const int32_t* block_segments) {
  const Range r = reachable_keys<V>(m, m.origin + row, m.origin + row);
  const int64_t begin = clamp<V>(r.begin - block.begin, 0, block.end - block.begin);
  const int64_t end = clamp<V>(r.end - block.begin, 0, block.end - block.begin);
  KeyBits bits{bit_range<V>(begin < 64 ? begin : 64, end < 64 ? end : 64),
               bit_range<V>(begin > 64 ? begin - 64 : 0, end > 64 ? end - 64 : 0)};
  if (m.query_segments != nullptr) {
    if (bits.low != 0) bits.low &= equal_word<V>(block_segments, m.query_segments[row]);
    if (bits.high != 0) bits.high &= equal_word<V>(block_segments + 64, m.query_segments[row]);
  }
  if (m.visible != nullptr) {
    const uint8_t* keys = m.visible + row * m.visible_stride + block.begin;
    for (int64_t j = begin; j < end; ++j)
      (j < 64 ? bits.low : bits.high) &= ~(uint64_t{keys[j] == 0} << j % 64);
  }
  return bits;
}

// Everything the loops over one job share.
struct BackwardState {
  BackwardJob job;
  ExampleMask mask;
  int64_t wide;  // padded head_dim
  Range block;   // keys
  int32_t block_segments[kKeyBlock];
  float *kt, *vt;   // [wide][128]
  float* kn;        // [128][wide]
  float *qn, *don;  // [group][rows of the job][wide]
  float *p, *ds;    // [64][128]
  float* dq;        // [group][pos][wide]
  float *dk, *dv;   // [128][wide], one after the other: chains of the current leaf
};

// Adds query rows [rows) of head g to the chains; rows lie inside one aligned tile. The rows and keys are
// first cut to those that attend to each other; then S and dP are computed and become P and dS in place, with
// +0 where the mask is off; then dV += P^T dO, dK += dS^T Q and dQ += dS K.
template <class V, bool kBf16>
void attention_backward_tile(const AttentionBackward& a, const float* delta, const BackwardState& t,
                             int64_t g, Range rows) {
  constexpr int kW = V::kWidth;
  const AttentionShape& s = a.shape;
  const int64_t dims = s.head_dim, wide = t.wide;

  KeyBits bits[kQueryTile];
  uint64_t low = 0, high = 0;
  const int64_t first_row = rows.begin;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const KeyBits w = backward_bits<V>(t.mask, i, t.block, t.block_segments);
    bits[i - first_row] = w;
    low |= w.low;
    high |= w.high;
  }
  if ((low | high) == 0) return;
  const auto empty_row = [&](int64_t i) { return (bits[i - first_row].low | bits[i - first_row].high) == 0; };
  while (empty_row(rows.begin)) ++rows.begin;
  while (empty_row(rows.end - 1)) --rows.end;
  const Range keys{low != 0 ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high),
                   high != 0 ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low)};
  const int64_t count = rows.end - rows.begin;
  const int64_t lane0 = keys.begin / kW * kW, lane1 = (keys.end + kW - 1) / kW * kW;

  const int64_t at = (g * (t.job.rows.end - t.job.rows.begin) + rows.begin - t.job.rows.begin) * wide;
  const float *qn = t.qn + at, *don = t.don + at;
  // S = Q K^T and dP = dO V^T.
  const int64_t depth = kBf16 ? wide : dims;
  machine::product<V, kBf16>(t.p + lane0, kKeyBlock, count, lane1 - lane0, {qn, wide, 1}, t.kt + lane0,
                             kKeyBlock, depth, 0, true);
  machine::product<V, kBf16>(t.ds + lane0, kKeyBlock, count, lane1 - lane0, {don, wide, 1}, t.vt + lane0,
                             kKeyBlock, depth, 0, true);

  const bool capped = s.soft_cap > 0;
  const V kappa = score_factor<V>(s);
  float inner[kKeyBlock];
  for (int64_t i = 0; i < count; ++i) {
    float* p = t.p + i * kKeyBlock;
    float* ds = t.ds + i * kKeyBlock;
    if (capped) {
      machine::tanh_of_scores(p + lane0, inner + lane0, lane1 - lane0, s.scale, s.soft_cap);
      for (int64_t j = lane0; j < lane1; ++j) p[j] = s.soft_cap * inner[j];
    }
    const int64_t saved = ((t.job.b * s.pos + rows.begin + i) * s.kv_heads + t.job.h) * s.group + g;
    const V m = V::set1(a.m[saved]), r = V::set1(a.r[saved]), row_delta = V::set1(delta[saved]);
    const KeyBits w = bits[rows.begin + i - first_row];
    for (int64_t j = lane0; j < lane1; j += kW) {
      const auto mask = V::mask(static_cast<uint32_t>(j < 64 ? w.low >> j : w.high >> (j - 64)));
      const auto [pv, dsv] = score_gradients<V, kBf16>(V::load(p + j), V::load(ds + j), m, r, row_delta,
                                                       kappa, capped ? inner + j : nullptr);
      V::select(mask, pv, V::zero()).store(p + j);
      V::select(mask, dsv, V::zero()).store(ds + j);
    }
  }
  // dV += P^T dO and dK += dS^T Q over queries; dQ += dS K over keys.
  const int64_t key_count = keys.end - keys.begin;
  if (t.job.dkv) {
    const int phase = static_cast<int>((t.mask.origin + rows.begin) % 32);
    machine::product<V, kBf16>(t.dv + keys.begin * wide, wide, key_count, dims,
                               {t.p + keys.begin, 1, kKeyBlock}, don, wide, count, phase, false);
    machine::product<V, kBf16>(t.dk + keys.begin * wide, wide, key_count, dims,
                               {t.ds + keys.begin, 1, kKeyBlock}, qn, wide, count, phase, false);
  }
  if (t.job.dq) {
    machine::product<V, kBf16>(t.dq + at, wide, count, dims, {t.ds + keys.begin, kKeyBlock, 1},
                               t.kn + keys.begin * wide, wide, key_count, static_cast<int>(keys.begin % 32),
                               false);
  }
}

// Calls visit with the rows of each tile that may reach the key block. Tiles end at multiples of 64 of the
// absolute position: no group of 32 is cut.
template <class V, class Visit>
inline void for_query_tiles(const ExampleMask& m, Range rows, Range block, Visit&& visit) {
  while (rows.begin < rows.end) {
    int64_t end = rows.begin + kQueryTile - (m.origin + rows.begin) % kQueryTile;
    if (end > rows.end) end = rows.end;
    const Range reach = reachable_keys<V>(m, m.origin + rows.begin, m.origin + end - 1);
    if (reach.begin < block.end && reach.end > block.begin) visit(Range{rows.begin, end});
    rows.begin = end;
  }
}

// The tree of N8 over leaves, on a stack of subtrees of `floats` floats. Leaf `leaf` has just been pushed. It
// is merged with the subtree below it while both have the same number of leaves. After the last leaf the rest
// is merged from the right.
template <class V>
inline void merge_leaves(float* stack, int64_t floats, int64_t leaf, bool last, int64_t* depth) {
  const auto merge = [&] {
    float* left = stack + (*depth - 2) * floats;
    for (int64_t i = 0; i < floats; i += V::kWidth)
      (V::load(left + i) + V::load(left + floats + i)).store(left + i);
    --*depth;
  };
  for (int64_t done = leaf + 1; (done & 1) == 0; done >>= 1) merge();
  while (last && *depth > 1) merge();
}

// Loads the current key block: K as rows for dq, K and V transposed for the scores.
template <class V, bool kBf16>
void load_key_block(const AttentionBackward& a, BackwardState& t) {
  const int64_t dims = a.shape.head_dim, wide = t.wide, count = t.block.end - t.block.begin;
  static_assert(V::kWidth * kMaxHeadDim <= 2 * kQueryTile * kKeyBlock);
  float* vn = t.p;  // p and ds are free until the first tile
  for (int64_t j0 = 0; j0 < kKeyBlock; j0 += V::kWidth) {
    for (int64_t j = j0; j < j0 + V::kWidth; ++j) {
      float* k = t.kn + j * wide;
      float* v = vn + (j - j0) * wide;
      t.block_segments[j] =
          t.mask.key_segments != nullptr && j < count ? t.mask.key_segments[t.block.begin + j] : 0;
      if (j < count) {
        const auto at = [&](const KeyStrides& st) {
          return t.job.b * st.batch + (t.block.begin + j) * st.pos + t.job.h * st.kv_head;
        };
        load_padded_row<V, kBf16>(a.k, at(a.k_strides), dims, wide, k);
        load_padded_row<V, kBf16>(a.v, at(a.v_strides), dims, wide, v);
      } else {
        for (int64_t d = 0; d < wide; ++d) k[d] = v[d] = 0;
      }
    }
    for (int64_t d = 0; d < wide; d += V::kWidth) {
      V::transpose(t.kn + j0 * wide + d, wide, t.kt + d * kKeyBlock + j0, kKeyBlock);
      V::transpose(vn + d, wide, t.vt + d * kKeyBlock + j0, kKeyBlock);
    }
  }
}

// Queries and dO of all rows of the job are widened to f32 first. For each key block, dk and dv of every leaf
// are pushed on a stack (`partials`) and merged in the order of N8's tree; what remains is stored after the
// last leaf. dq of all rows adds up over all blocks and is stored at the end.
template <class V, bool kBf16>
void attention_backward_job(const AttentionBackward& a, const float* delta, const BackwardJob& job,
                            float* scratch) {
  const AttentionShape& s = a.shape;
  const int64_t dims = s.head_dim, wide = padded(dims), tile = kKeyBlock * wide;
  const int64_t job_rows = job.rows.end - job.rows.begin;
  BackwardState t;
  t.job = job;
  t.mask = example_mask<V>(s, job.b);
  t.wide = wide;
  t.kt = scratch;
  t.vt = t.kt + tile;
  t.kn = t.vt + tile;
  t.qn = t.kn + tile;
  t.don = t.qn + s.group * job_rows * wide;
  t.p = t.don + s.group * job_rows * wide;
  t.ds = t.p + kQueryTile * kKeyBlock;
  float* partials = t.ds + kQueryTile * kKeyBlock;  // a stack of subtrees of leaves, dk then dv each
  const bool one_leaf = a.query_leaf_ends.empty() || !job.dkv;
  const int64_t leaves = one_leaf ? 1 : static_cast<int64_t>(a.query_leaf_ends.size());
  t.dq = partials + 2 * leaf_partials(a) * tile;
  if (job.dq)
    for (int64_t i = 0; i < s.group * job_rows * wide; ++i) t.dq[i] = 0;
  for (int64_t g = 0; g < s.group; ++g)
    for (int64_t i = 0; i < job_rows; ++i) {
      const int64_t to = (g * job_rows + i) * wide;
      const auto from = [&](const QueryStrides& st) {
        return job.b * st.batch + (job.rows.begin + i) * st.pos + job.h * st.kv_head + g * st.group;
      };
      load_padded_row<V, kBf16>(a.q, from(a.q_strides), dims, wide, t.qn + to);
      load_padded_row<V, kBf16>(a.dout, from(a.dout_strides), dims, wide, t.don + to);
    }

  const V zero = V::zero(), scale = V::set1(s.scale), key_scale = V::set1(a.partial ? 1.0f : s.scale);
  const Range reach = job_rows == 0 ? Range{0, 0}
                                    : reachable_keys<V>(t.mask, t.mask.origin + job.rows.begin,
                                                        t.mask.origin + job.rows.end - 1);
  for (int64_t block = job.keys.begin; block < job.keys.end; block += kKeyBlock) {
    t.block = {block, block + kKeyBlock < job.keys.end ? block + kKeyBlock : job.keys.end};
    const bool visited = reach.begin < t.block.end && reach.end > t.block.begin;
    if (visited) load_key_block<V, kBf16>(a, t);
    int64_t depth = 0;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      t.dk = partials + 2 * depth * tile;
      t.dv = t.dk + tile;
      for (int64_t i = 0; job.dkv && i < 2 * tile; i += V::kWidth) zero.store(t.dk + i);
      ++depth;
      Range rows = job.rows;
      if (!one_leaf) {
        if (leaf > 0) rows.begin = a.query_leaf_ends[static_cast<size_t>(leaf - 1)];
        rows.end = a.query_leaf_ends[static_cast<size_t>(leaf)];
      }
      for (int64_t g = 0; visited && g < s.group; ++g)
        for_query_tiles<V>(t.mask, rows, t.block,
                           [&](Range r) { attention_backward_tile<V, kBf16>(a, delta, t, g, r); });
      merge_leaves<V>(partials, 2 * tile, leaf, leaf + 1 == leaves, &depth);
    }

    for (int64_t j = 0; job.dkv && j < t.block.end - block; ++j) {
      float* dk = partials + j * wide;
      float* dv = dk + tile;
      for (int64_t d = 0; d < wide; d += V::kWidth) {
        (V::load(dk + d) * key_scale + zero).store(dk + d);
        (V::load(dv + d) + zero).store(dv + d);
      }
      const auto at = [&](const KeyStrides& st) {
        return job.b * st.batch + (block + j) * st.pos + job.h * st.kv_head;
      };
      store_row<V>(dk, dims, a.dk, at(a.dk_strides), a.grad_type);
      store_row<V>(dv, dims, a.dv, at(a.dv_strides), a.grad_type);
    }
  }
  if (!job.dq) return;
  for (int64_t g = 0; g < s.group; ++g)
    for (int64_t i = 0; i < job_rows; ++i) {
      float* dq = t.dq + (g * job_rows + i) * wide;
      for (int64_t d = 0; d < wide; d += V::kWidth) (V::load(dq + d) * scale + zero).store(dq + d);
      store_row<V>(dq, dims, a.dq,
                   job.b * a.dq_strides.batch + (job.rows.begin + i) * a.dq_strides.pos +
                       job.h * a.dq_strides.kv_head + g * a.dq_strides.group,
                   a.grad_type);
    }
}

}  // namespace ostro::kernels
