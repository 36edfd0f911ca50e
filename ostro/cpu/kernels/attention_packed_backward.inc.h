// bf16 attention backward on matrix instructions (attention_packed.inc.h), one job. Lanes are keys: S = Q K^T
// and dP = dO V^T [query][key] become P and dS, rounded, as words over pairs of queries for dV^T += dO^T P
// and dK^T += Q^T dS, and dS also as rows over keys for dQ += dS K. Query rows lie in tiles of 64 that start
// at multiples of 64 of the absolute position, so no group of 32 is cut.
#pragma once

#include "ostro/cpu/kernels/attention_backward.inc.h"
#include "ostro/cpu/kernels/attention_packed.inc.h"
#include "ostro/cpu/kernels/exp2.inc.h"
#include "ostro/cpu/kernels/vec_avx512.h"

namespace ostro::cpu::kernels {

// One query tile of one head, packed once per job.
struct PackedQueries {
  uint32_t *q, *dout;                // rows [64][wide / 2]
  uint32_t *q_turned, *dout_turned;  // rows [wide][32], k counts queries
  float* dq;                         // [64][wide]
};

struct PackedBackward {
  BackwardJob job;
  ExampleMask mask;
  int64_t wide;
  Range block;
  int32_t block_segments[kKeyBlock];
  int64_t first_tile, tiles;      // of absolute positions in 64s
  uint32_t *k_turned, *v_turned;  // words [wide / 2][128]: k counts head_dim
  uint32_t* k_pairs;              // words [64][wide]: k counts keys
  float *scores, *dp;             // [32][128]
  uint32_t *p_pairs, *ds_pairs;   // words [32][128]: k counts queries
  uint32_t* ds_rows;              // rows [64][64]
  float *dk, *dv;                 // [wide][128], chains of the current leaf
  float* queries;

  static int64_t query_floats(int64_t wide) { return (4 * kQueryTile / 2 + kQueryTile) * wide; }
  PackedQueries tile(int64_t g, int64_t index) const {
    float* at = queries + (g * tiles + index) * query_floats(wide);
    const int64_t half = kQueryTile / 2 * wide;
    uint32_t* words = reinterpret_cast<uint32_t*>(at);
    return {words, words + half, words + 2 * half, words + 3 * half, at + 4 * half};
  }
};

template <class P>
int64_t packed_backward_scratch(const AttentionBackward& a, const BackwardJob& job) {
  const int64_t wide = padded(a.shape.head_dim), rows = job.rows.end - job.rows.begin;
  const int64_t tiles = rows / kQueryTile + 2;
  return 3 * kKeyBlock / 2 * wide + 2 * kLaneBlock * kKeyBlock + 3 * kQueryTile / 2 * kKeyBlock +
         2 * leaf_partials(a) * kKeyBlock * wide +
         a.shape.group * tiles * PackedBackward::query_floats(wide) + kKeyBlock * wide;
}

// Rows of absolute positions [64 index, + 64) of head g; none outside the job's rows.
template <class P>
void pack_queries(const AttentionBackward& a, const PackedBackward& t, int64_t g, int64_t index,
                  uint32_t* pairs) {
  const AttentionShape& s = a.shape;
  const PackedQueries out = t.tile(g, index);
  const int64_t row0 = (t.first_tile + index) * kQueryTile - t.mask.origin;
  const auto pack = [&](const void* from, const QueryStrides& st, uint32_t* rows, uint32_t* turned) {
    uint16_t* to = reinterpret_cast<uint16_t*>(rows);
    for (int64_t i = 0; i < kQueryTile; ++i) {
      const uint16_t* row = nullptr;
      if (row0 + i >= t.job.rows.begin && row0 + i < t.job.rows.end)
        row = static_cast<const uint16_t*>(from) + t.job.b * st.batch + (row0 + i) * st.pos +
              t.job.h * st.kv_head + g * st.group;
      copy_row<P>(row, s.head_dim, t.wide, to + i * t.wide);
    }
    if (t.job.dkv) {
      pair_rows<P>(to, t.wide, kQueryTile, pairs);
      transpose_words<P>(pairs, t.wide, kQueryTile / 2, t.wide, turned, kQueryTile / 2);
    }
    order_rows<P>(to, kQueryTile * t.wide);
  };
  pack(a.q, a.q_strides, out.q, out.q_turned);
  pack(a.dout, a.dout_strides, out.dout, out.dout_turned);
  for (int64_t i = 0; i < kQueryTile * t.wide; i += 16) _mm512_storeu_ps(out.dq + i, _mm512_setzero_ps());
}

template <class P>
void pack_key_block(const AttentionBackward& a, PackedBackward& t, uint16_t* rows) {
  const int64_t dims = a.shape.head_dim, count = t.block.end - t.block.begin;
  const auto load = [&](const void* from, const KeyStrides& st) {
    for (int64_t j = 0; j < kKeyBlock; ++j) {
      const uint16_t* row = nullptr;
      if (j < count)
        row = static_cast<const uint16_t*>(from) + t.job.b * st.batch + (t.block.begin + j) * st.pos +
              t.job.h * st.kv_head;
      copy_row<P>(row, dims, t.wide, rows + j * t.wide);
    }
  };
  load(a.v, a.v_strides);
  order_rows<P>(rows, kKeyBlock * t.wide);
  transpose_words<P>(rows, t.wide / 2, kKeyBlock, t.wide / 2, t.v_turned, kKeyBlock);
  load(a.k, a.k_strides);
  if (t.job.dq) pair_rows<P>(rows, t.wide, kKeyBlock, t.k_pairs);
  order_rows<P>(rows, kKeyBlock * t.wide);
  transpose_words<P>(rows, t.wide / 2, kKeyBlock, t.wide / 2, t.k_turned, kKeyBlock);
  for (int64_t j = 0; j < kKeyBlock; ++j)
    t.block_segments[j] =
        t.mask.key_segments != nullptr && j < count ? t.mask.key_segments[t.block.begin + j] : 0;
}

// Saved values of the rows of a tile; zeros where there is none.
struct RowValues {
  float m[kQueryTile], r[kQueryTile], delta[kQueryTile];
};

// P and dS of rows [row, row + 32) of a tile and `keys`, groups of 32, from scores and dp.
template <class P, bool kCapped>
inline void packed_gradients(const AttentionShape& s, const PackedBackward& t, int64_t row, Range keys,
                             const uint16_t* masks, const RowValues& values) {
  using V = VecAvx512;
  const V kappa = V::set1(kCapped ? numerics::kLog2e : s.scale * numerics::kLog2e);
  const V cap = V::set1(s.soft_cap), one = V::set1(1.0f);
  for (int64_t i = 0; i < 32; i += 4) {
    V m[4], r[4], delta[4];
    for (int n = 0; n < 4; ++n) {
      m[n] = V::set1(values.m[row + i + n]);
      r[n] = V::set1(values.r[row + i + n]);
      delta[n] = V::set1(values.delta[row + i + n]);
    }
    const int q = static_cast<int>(i / 4);
    for (int64_t j = keys.begin; j < keys.end; j += V::kWidth) {
      __m512 p[4], ds[4];
      for (int n = 0; n < 4; ++n) {
        const __mmask16 mask = masks[(row + i + n) * 8 + j / V::kWidth];
        V x = V::load(t.scores + (i + n) * kKeyBlock + j), dp = V::load(t.dp + (i + n) * kKeyBlock + j);
        V slope = one;
        if constexpr (kCapped) {
          slope = one - x * x;  // x is the tanh
          x = cap * x;
        }
        const V e = exp2_below<V>(x, m[n], kappa);
        p[n] = _mm512_maskz_mul_ps(mask, e.v, r[n].v);
        ds[n] = _mm512_maskz_mul_ps(mask, p[n], (dp - delta[n]).v);
        if constexpr (kCapped) ds[n] = _mm512_mul_ps(ds[n], slope.v);
      }
      const Quad rounded = round_quad<P>(ds);
      if (t.job.dkv) {
        const int64_t at = row / 2 * kKeyBlock + j;
        store_words<P>(round_quad<P>(p), q, t.p_pairs + at, kKeyBlock);
        store_words<P>(rounded, q, t.ds_pairs + at, kKeyBlock);
      }
      if (t.job.dq)
        store_rows<P>(rounded, static_cast<int>(j / V::kWidth % 2),
                      t.ds_rows + (row + i) * kKeyBlock / 2 + j / 32 * 16, kKeyBlock / 2);
    }
  }
}

// Adds query rows [rows) of head g to the chains; they lie inside tile `index`.
template <class P>
void packed_backward_tile(const AttentionBackward& a, const float* delta, const PackedBackward& t, int64_t g,
                          int64_t index, Range rows) {
  const AttentionShape& s = a.shape;
  const int64_t wide = t.wide, rows16 = (s.head_dim + 15) / 16 * 16;
  const int64_t row0 = (t.first_tile + index) * kQueryTile - t.mask.origin;
  uint64_t bits[kQueryTile][2] = {};
  uint64_t any[2][2] = {};  // of the lower and the upper half of the tile
  RowValues values = {};
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t i = row - row0;
    const KeyBits w = backward_bits<VecAvx512>(t.mask, row, t.block, t.block_segments);
    bits[i][0] = w.low;
    bits[i][1] = w.high;
    any[i / 32][0] |= w.low;
    any[i / 32][1] |= w.high;
    const int64_t saved = ((t.job.b * s.pos + row) * s.kv_heads + t.job.h) * s.group + g;
    values.m[i] = a.m[saved];
    values.r[i] = a.r[saved];
    values.delta[i] = delta[saved];
  }
  uint16_t masks[kQueryTile * 8];
  __builtin_memcpy(masks, bits, sizeof masks);
  const PackedQueries packed = t.tile(g, index);
  Range keys[2] = {{0, 0}, {0, 0}};  // of each half, in groups of 32
  for (int half = 0; half < 2; ++half) {
    const int64_t row = 32 * half;
    const uint64_t low = any[half][0], high = any[half][1];
    if ((low | high) == 0) continue;
    const Range reach{(low != 0 ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high)) / 32 * 32,
                      ((high != 0 ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low)) + 31) / 32 * 32};
    keys[half] = reach;
    for (int64_t j = reach.begin; j < reach.end; j += kLaneBlock) {
      P::multiply(t.scores + j, kKeyBlock, 32, packed.q + row * wide / 2, wide / 2, t.k_turned + j, kKeyBlock,
                  wide / 32, true);
      P::multiply(t.dp + j, kKeyBlock, 32, packed.dout + row * wide / 2, wide / 2, t.v_turned + j, kKeyBlock,
                  wide / 32, true);
    }
    if (s.soft_cap > 0) {
      for (int64_t i = 0; i < 32; ++i)
        for (int64_t j = reach.begin; j < reach.end; ++j) {
          float& x = t.scores[i * kKeyBlock + j];
          x = numerics::tanh_f32((x * s.scale) / s.soft_cap);
        }
      packed_gradients<P, true>(s, t, row, reach, masks, values);
    } else {
      packed_gradients<P, false>(s, t, row, reach, masks, values);
    }
    if (t.job.dq)
      for (int64_t d = 0; d < wide; d += kLaneBlock)
        P::multiply(packed.dq + row * wide + d, wide, 32, t.ds_rows + (row * kKeyBlock + reach.begin) / 2,
                    kKeyBlock / 2, t.k_pairs + reach.begin / 2 * wide + d, wide,
                    (reach.end - reach.begin) / 32, false);
  }
  if (!t.job.dkv) return;
  for (int64_t j = 0; j < kKeyBlock; j += kLaneBlock) {
    const bool lower = keys[0].begin <= j && j < keys[0].end, upper = keys[1].begin <= j && j < keys[1].end;
    if (!lower && !upper) continue;
    const int64_t word = lower ? 0 : 16, groups = lower && upper ? 2 : 1;
    const int64_t at = word * kKeyBlock + j;
    P::multiply(t.dv + j, kKeyBlock, rows16, packed.dout_turned + word, kQueryTile / 2, t.p_pairs + at,
                kKeyBlock, groups, false);
    P::multiply(t.dk + j, kKeyBlock, rows16, packed.q_turned + word, kQueryTile / 2, t.ds_pairs + at,
                kKeyBlock, groups, false);
  }
}

// dk and dv of the block: from the root of the leaves' tree, dk first, each [wide][128].
template <class P>
void store_key_gradients(const AttentionBackward& a, const PackedBackward& t, float* root, float* rows) {
  using V = VecAvx512;
  const int64_t dims = a.shape.head_dim, wide = t.wide;
  const auto store = [&](float* turned, V scale, bool scaled, void* to, const KeyStrides& st) {
    for (int64_t i = 0; i < wide * kKeyBlock; i += V::kWidth) {
      const V x = V::load(turned + i);
      ((scaled ? x * scale : x) + V::zero()).store(turned + i);
    }
    transpose_words<P>(turned, kKeyBlock, wide, kKeyBlock, rows, wide);
    for (int64_t j = 0; j < t.block.end - t.block.begin; ++j)
      store_row<V>(rows + j * wide, dims, to,
                   t.job.b * st.batch + (t.block.begin + j) * st.pos + t.job.h * st.kv_head, a.grad_type);
  };
  store(root, V::set1(a.shape.scale), true, a.dk, a.dk_strides);
  store(root + kKeyBlock * wide, V::zero(), false, a.dv, a.dv_strides);
}

template <class P>
void packed_backward_job(const AttentionBackward& a, const float* delta, const BackwardJob& job,
                         float* scratch) {
  using V = VecAvx512;
  const AttentionShape& s = a.shape;
  const int64_t wide = padded(s.head_dim), tile = kKeyBlock * wide;
  PackedBackward t;
  t.job = job;
  t.mask = example_mask<V>(s, job.b);
  t.wide = wide;
  const auto take = [&](int64_t floats) {
    float* at = scratch;
    scratch += floats;
    return at;
  };
  const auto take_words = [&](int64_t words) { return reinterpret_cast<uint32_t*>(take(words)); };
  t.k_turned = take_words(kKeyBlock / 2 * wide);
  t.v_turned = take_words(kKeyBlock / 2 * wide);
  t.k_pairs = take_words(kKeyBlock / 2 * wide);
  t.scores = take(kLaneBlock * kKeyBlock);
  t.dp = take(kLaneBlock * kKeyBlock);
  t.p_pairs = take_words(kQueryTile / 2 * kKeyBlock);
  t.ds_pairs = take_words(kQueryTile / 2 * kKeyBlock);
  t.ds_rows = take_words(kQueryTile / 2 * kKeyBlock);
  float* partials = take(2 * leaf_partials(a) * tile);  // a stack of subtrees of leaves, dk then dv each
  float* rows = take(tile);
  t.queries = scratch;
  const int64_t first = t.mask.origin + job.rows.begin, last = t.mask.origin + job.rows.end - 1;
  t.first_tile = first / kQueryTile;
  t.tiles = job.rows.begin < job.rows.end ? last / kQueryTile - t.first_tile + 1 : 0;
  for (int64_t g = 0; g < s.group; ++g)
    for (int64_t i = 0; i < t.tiles; ++i) pack_queries<P>(a, t, g, i, reinterpret_cast<uint32_t*>(rows));

  const bool one_leaf = a.query_leaf_ends.empty() || !job.dkv;
  const int64_t leaves = one_leaf ? 1 : static_cast<int64_t>(a.query_leaf_ends.size());
  const Range reach = t.tiles == 0 ? Range{0, 0} : reachable_keys<V>(t.mask, first, last);
  P::enter();
  for (int64_t block = job.keys.begin; block < job.keys.end; block += kKeyBlock) {
    t.block = {block, block + kKeyBlock < job.keys.end ? block + kKeyBlock : job.keys.end};
    const bool visited = reach.begin < t.block.end && reach.end > t.block.begin;
    if (visited) pack_key_block<P>(a, t, reinterpret_cast<uint16_t*>(rows));
    int64_t depth = 0;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      t.dk = partials + 2 * depth * tile;
      t.dv = t.dk + tile;
      for (int64_t i = 0; job.dkv && i < 2 * tile; i += V::kWidth) V::zero().store(t.dk + i);
      ++depth;
      Range leaf_rows = job.rows;
      if (!one_leaf) {
        if (leaf > 0) leaf_rows.begin = a.query_leaf_ends[static_cast<size_t>(leaf - 1)];
        leaf_rows.end = a.query_leaf_ends[static_cast<size_t>(leaf)];
      }
      for (int64_t g = 0; visited && g < s.group; ++g)
        for_query_tiles<V>(t.mask, leaf_rows, t.block, [&](Range r) {
          packed_backward_tile<P>(a, delta, t, g, (t.mask.origin + r.begin) / kQueryTile - t.first_tile, r);
        });
      merge_leaves<V>(partials, 2 * tile, leaf, leaf + 1 == leaves, &depth);
    }
    if (job.dkv) store_key_gradients<P>(a, t, partials, rows);
  }
  P::leave();
  if (!job.dq) return;
  const V scale = V::set1(s.scale);
  for (int64_t g = 0; g < s.group; ++g)
    for (int64_t row = job.rows.begin; row < job.rows.end; ++row) {
      const int64_t p = t.mask.origin + row;
      float* dq = t.tile(g, p / kQueryTile - t.first_tile).dq + p % kQueryTile * wide;
      for (int64_t d = 0; d < wide; d += V::kWidth) (V::load(dq + d) * scale + V::zero()).store(dq + d);
      store_row<V>(dq, s.head_dim, a.dq,
                   job.b * a.dq_strides.batch + row * a.dq_strides.pos + job.h * a.dq_strides.kv_head +
                       g * a.dq_strides.group,
                   a.grad_type);
    }
}

}  // namespace ostro::cpu::kernels
