// packed_backward_job: bf16 attention backward on matrix instructions (attention_packed.inc.h), one job.
//
// The lanes of all products are keys. Two products give S = Q K^T and dP = dO V^T, both [query][key]. From
// them come P and dS, rounded to bf16. They are stored as words, each of two neighbouring queries, for
// dV^T += dO^T P and dK^T += Q^T dS. dS is stored a second time, as rows of keys, for dQ += dS K.
//
// Query rows lie in tiles of 64 that start at multiples of 64 of the absolute position, so no group of 32 is
// cut. A job uses nothing but its arguments and its scratch memory, so jobs may run on several threads. There
// are no errors. Source of the order of sums: docs/spec/numerics.md, N9.
#pragma once

#include "ostro/kernels/attention/kernels/attention_backward.inc.h"
#include "ostro/kernels/attention/kernels/attention_packed.inc.h"
#include "ostro/machine/vector/exp2.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::kernels {

// One query tile of one head, packed once per job.
struct PackedQueries {
  uint32_t *q, *dout;                // rows [64][wide / 2]
  uint32_t *q_turned, *dout_turned;  // rows [wide][32], k counts queries
  float* dq;                         // [64][wide]
  uint32_t* dq_started;              // for each half of the tile: whether anything lies in dq
};

struct PackedBackward {
  BackwardJob job;
  ExampleMask mask;
  int64_t wide;
  Range block;
  int32_t block_segments[kKeyBlock];
  int64_t first_tile, tiles;             // of absolute positions in 64s
  uint32_t *k_turned, *v_turned;         // words [wide / 2][128]: k counts head_dim
  uint32_t* k_pairs;                     // words [64][wide]: k counts keys
  float *scores, *dp;                    // [64][32]
  uint32_t *p_pairs, *ds_pairs;          // words [32][32]: k counts queries
  uint32_t* ds_rows;                     // rows [64][64]
  float *dk, *dv;                        // [wide][128], chains of the current leaf
  bool started[kKeyBlock / kLaneBlock];  // whether anything lies in these lanes of dk and dv
  float* queries;
  uint32_t* dq_started;

  static int64_t query_floats(int64_t wide) { return (4 * kQueryTile / 2 + kQueryTile) * wide; }
  PackedQueries tile(int64_t g, int64_t index) const {
    float* at = queries + (g * tiles + index) * query_floats(wide);
    const int64_t half = kQueryTile / 2 * wide;
    uint32_t* words = reinterpret_cast<uint32_t*>(at);
    return {words,
            words + half,
            words + 2 * half,
            words + 3 * half,
            at + 4 * half,
            dq_started + 2 * (g * tiles + index)};
  }
};

// The scratch memory that packed_backward_job needs, in floats.
template <class P>
int64_t packed_backward_scratch(const AttentionBackward& a, const BackwardJob& job) {
  const int64_t wide = padded(a.shape.head_dim), rows = job.rows.end - job.rows.begin;
  const int64_t tiles = rows / kQueryTile + 2;
  return 3 * kKeyBlock / 2 * wide + 3 * kQueryTile * kLaneBlock + kQueryTile / 2 * kKeyBlock +
         2 * leaf_partials(a) * kKeyBlock * wide +
         a.shape.group * tiles * (PackedBackward::query_floats(wide) + 2) + kKeyBlock * wide;
}

// Packs the query rows of head g at the absolute positions [64 index, 64 index + 64). Rows outside of the
// job's rows become zeros.
template <class P>
void pack_queries(const AttentionBackward& a, const PackedBackward& t, int64_t g, int64_t index,
                  uint32_t* pairs) {
  constexpr int64_t kAhead = 16;  // rows to prefetch: they are too far apart for the hardware prefetcher
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
      if (row != nullptr && row0 + i + kAhead < t.job.rows.end)
        for (int64_t d = 0; d < s.head_dim; d += 32) __builtin_prefetch(row + kAhead * st.pos + d);
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
}

// Packs the keys and values of the block t.block, and takes over their segments. `rows` is scratch memory.
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

// Prefetches 32 of the rows that store_key_gradients will write.
template <class P>
void fetch_key_gradients(const AttentionBackward& a, const PackedBackward& t, int64_t first) {
  const int64_t count = t.block.end - t.block.begin, size = a.grad_type == machine::FloatType::kF32 ? 4 : 2;
  const auto fetch = [&](void* to, const KeyStrides& st) {
    for (int64_t j = first; j < count && j < first + 32; ++j) {
      const int64_t at = t.job.b * st.batch + (t.block.begin + j) * st.pos + t.job.h * st.kv_head;
      for (int64_t d = 0; d < a.shape.head_dim * size; d += 64)
        __builtin_prefetch(static_cast<char*>(to) + at * size + d, 1);
    }
  };
  fetch(a.dk, a.dk_strides);
  fetch(a.dv, a.dv_strides);
}

// Saved values of the rows of a tile; zeros where there is none.
struct RowValues {
  float m[kQueryTile], r[kQueryTile], delta[kQueryTile];
};

// Computes P and dS of query rows [row, row + 32) of a tile and of 32 keys from `key` on, from scores and dp.
template <class P, bool kCapped>
inline void packed_gradients(const AttentionShape& s, const PackedBackward& t, int64_t row, int64_t key,
                             const uint16_t* masks, const RowValues& values) {
  using V = machine::VecAvx512;
  const V kappa = score_factor<V>(s);
  const V cap = V::set1(s.soft_cap), one = V::set1(1.0f);
  for (int64_t i = row; i < row + 32; i += 4) {
    const int q = static_cast<int>(i % 32 / 4);
    for (int64_t j = 0; j < kLaneBlock; j += V::kWidth) {
      __m512 p[4], ds[4];
      for (int n = 0; n < 4; ++n) {
        const __mmask16 mask = masks[(i + n) * 8 + (key + j) / V::kWidth];
        V x = V::load(t.scores + (i + n) * kLaneBlock + j);
        const V dp = V::load(t.dp + (i + n) * kLaneBlock + j);
        V slope = one;
        if constexpr (kCapped) {
          slope = one - x * x;  // x is the tanh
          x = cap * x;
        }
        const V e = machine::exp2_below<V>(x, V::set1(values.m[i + n]), kappa);
        p[n] = _mm512_maskz_mul_ps(mask, e.v, V::set1(values.r[i + n]).v);
        ds[n] = _mm512_maskz_mul_ps(mask, p[n], (dp - V::set1(values.delta[i + n])).v);
        if constexpr (kCapped) ds[n] = _mm512_mul_ps(ds[n], slope.v);
      }
      const Quad rounded = round_quad<P>(ds);
      if (t.job.dkv) {
        const int64_t at = row / 2 * kLaneBlock + j;
        store_words<P>(round_quad<P>(p), q, t.p_pairs + at, kLaneBlock);
        store_words<P>(rounded, q, t.ds_pairs + at, kLaneBlock);
      }
      if (t.job.dq)
        store_rows<P>(rounded, static_cast<int>(j / V::kWidth), t.ds_rows + (i * kKeyBlock + key) / 2,
                      kKeyBlock / 2);
    }
  }
}

// Adds query rows [rows) of head g to the chains; they lie inside tile `index`. Keys are taken 32 at a time,
// with the halves of the tile (32 rows each) that attend to any of them: scores, gradients, dv and dk. dq
// comes last, for each half over the runs of those key blocks.
template <class P>
void packed_backward_tile(const AttentionBackward& a, const float* delta, PackedBackward& t, int64_t g,
                          int64_t index, Range rows) {
  const AttentionShape& s = a.shape;
  const int64_t wide = t.wide, rows16 = (s.head_dim + 15) / 16 * 16;
  const int64_t row0 = (t.first_tile + index) * kQueryTile - t.mask.origin;
  uint64_t bits[kQueryTile][2] = {};
  uint64_t any[2][2] = {};  // of the lower and the upper half of the tile
  RowValues values = {};
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t i = row - row0;
    const KeyBits w = backward_bits<machine::VecAvx512>(t.mask, row, t.block, t.block_segments);
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
  // Blocks of 32 keys; first and last half of the tile that attends to any of them.
  int first[kKeyBlock / kLaneBlock], end[kKeyBlock / kLaneBlock];
  for (int64_t j = 0; j < kKeyBlock; j += kLaneBlock) {
    const auto some = [&](int half) { return (any[half][j / 64] >> (j % 64) & 0xffffffffu) != 0; };
    first[j / kLaneBlock] = some(0) ? 0 : 1;
    end[j / kLaneBlock] = some(1) ? 2 : 1;
  }
  for (int64_t j = 0; j < kKeyBlock; j += kLaneBlock) {
    const int64_t row = 32 * first[j / kLaneBlock], count = 32 * end[j / kLaneBlock] - row;
    if (count == 0) continue;
    P::multiply(t.scores + row * kLaneBlock, kLaneBlock, count, packed.q + row * wide / 2, wide / 2,
                t.k_turned + j, kKeyBlock, wide / 32, true);
    P::multiply(t.dp + row * kLaneBlock, kLaneBlock, count, packed.dout + row * wide / 2, wide / 2,
                t.v_turned + j, kKeyBlock, wide / 32, true);
    if (s.soft_cap > 0) {
      float* of_rows = t.scores + row * kLaneBlock;
      machine::tanh_of_scores(of_rows, of_rows, count * kLaneBlock, s.scale, s.soft_cap);
      for (int64_t i = row; i < row + count; i += 32) packed_gradients<P, true>(s, t, i, j, masks, values);
    } else {
      for (int64_t i = row; i < row + count; i += 32) packed_gradients<P, false>(s, t, i, j, masks, values);
    }
    if (!t.job.dkv) continue;
    const int64_t word = row / 2, groups = count / 32;
    P::multiply(t.dv + j, kKeyBlock, rows16, packed.dout_turned + word, kQueryTile / 2,
                t.p_pairs + word * kLaneBlock, kLaneBlock, groups, !t.started[j / kLaneBlock]);
    P::multiply(t.dk + j, kKeyBlock, rows16, packed.q_turned + word, kQueryTile / 2,
                t.ds_pairs + word * kLaneBlock, kLaneBlock, groups, !t.started[j / kLaneBlock]);
    t.started[j / kLaneBlock] = true;
  }
  if (!t.job.dq) return;
  for (int half = 0; half < 2; ++half) {
    // Runs of blocks that this half has rows for.
    const auto some = [&](int64_t j) { return first[j / kLaneBlock] <= half && half < end[j / kLaneBlock]; };
    for (int64_t j = 0; j < kKeyBlock; j += kLaneBlock) {
      if (!some(j)) continue;
      const int64_t begin = j;
      while (j < kKeyBlock && some(j)) j += kLaneBlock;
      for (int64_t d = 0; d < wide; d += kLaneBlock)
        P::multiply(packed.dq + 32 * half * wide + d, wide, 32,
                    t.ds_rows + (32 * half * kKeyBlock + begin) / 2, kKeyBlock / 2,
                    t.k_pairs + begin / 2 * wide + d, wide, (j - begin) / 32, packed.dq_started[half] == 0);
      packed.dq_started[half] = 1;
    }
  }
}

// dk and dv of the block: from the root of the leaves' tree, dk first, each [wide][128].
template <class P>
void store_key_gradients(const AttentionBackward& a, const PackedBackward& t, const float* root) {
  using V = machine::VecAvx512;
  const int64_t dims = a.shape.head_dim, count = t.block.end - t.block.begin;
  const auto store = [&](const float* turned, bool scaled, void* to, const KeyStrides& st) {
    const V scale = V::set1(a.shape.scale);
    const int64_t first = t.job.b * st.batch + t.block.begin * st.pos + t.job.h * st.kv_head;
    for (int64_t j = 0; j < count; j += 16)
      for (int64_t d = 0; d < dims; d += 16) {
        __m512i block[16];
        for (int i = 0; i < 16; ++i) {
          V x = V::load(turned + (d + i) * kKeyBlock + j);
          if (scaled) x = x * scale;
          block[i] = _mm512_castps_si512((x + V::zero()).v);
        }
        machine::transpose16(block);
        const int rows = static_cast<int>(count - j < 16 ? count - j : 16);
        for (int i = 0; i < rows; ++i)
          store_lanes<P>(_mm512_castsi512_ps(block[i]), dims - d, to, first + (j + i) * st.pos + d,
                         a.grad_type);
      }
  };
  store(root, !a.partial, a.dk, a.dk_strides);
  store(root + kKeyBlock * t.wide, false, a.dv, a.dv_strides);
}

// The loops of attention_backward_job, with all queries of the job packed before and each key block packed
// when it comes. Accumulators are written, not cleared, by their first product (`started`, dq_started); lanes
// of dk and dv that no product wrote become zeros before leaves are merged.
template <class P>
void packed_backward_job(const AttentionBackward& a, const float* delta, const BackwardJob& job,
                         float* scratch) {
  using V = machine::VecAvx512;
  const AttentionShape& s = a.shape;
  const int64_t wide = padded(s.head_dim), size = kKeyBlock * wide;
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
  t.scores = take(kQueryTile * kLaneBlock);
  t.dp = take(kQueryTile * kLaneBlock);
  t.p_pairs = take_words(kQueryTile / 2 * kLaneBlock);
  t.ds_pairs = take_words(kQueryTile / 2 * kLaneBlock);
  t.ds_rows = take_words(kQueryTile / 2 * kKeyBlock);
  float* partials = take(2 * leaf_partials(a) * size);  // a stack of subtrees of leaves, dk then dv each
  float* rows = take(size);
  const int64_t first = t.mask.origin + job.rows.begin, last = t.mask.origin + job.rows.end - 1;
  t.first_tile = first / kQueryTile;
  t.tiles = job.rows.begin < job.rows.end ? last / kQueryTile - t.first_tile + 1 : 0;
  t.queries = take(s.group * t.tiles * PackedBackward::query_floats(wide));
  t.dq_started = take_words(2 * s.group * t.tiles);
  for (int64_t i = 0; i < 2 * s.group * t.tiles; ++i) t.dq_started[i] = 0;
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
    int64_t depth = 0, fetched = 0;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      t.dk = partials + 2 * depth * size;
      t.dv = t.dk + size;
      for (bool& lanes : t.started) lanes = false;
      ++depth;
      Range leaf_rows = job.rows;
      if (!one_leaf) {
        if (leaf > 0) leaf_rows.begin = a.query_leaf_ends[static_cast<size_t>(leaf - 1)];
        leaf_rows.end = a.query_leaf_ends[static_cast<size_t>(leaf)];
      }
      for (int64_t g = 0; visited && g < s.group; ++g)
        for_query_tiles<V>(t.mask, leaf_rows, t.block, [&](Range r) {
          if (job.dkv && fetched < kKeyBlock) fetch_key_gradients<P>(a, t, fetched);
          fetched += 32;
          packed_backward_tile<P>(a, delta, t, g, (t.mask.origin + r.begin) / kQueryTile - t.first_tile, r);
        });
      for (int64_t j = 0; job.dkv && j < kKeyBlock; j += V::kWidth)
        for (int64_t d = 0; d < 2 * wide && !t.started[j / kLaneBlock]; ++d)
          V::zero().store(t.dk + d * kKeyBlock + j);
      merge_leaves<V>(partials, 2 * size, leaf, leaf + 1 == leaves, &depth);
    }
    if (job.dkv) store_key_gradients<P>(a, t, partials);
  }
  P::leave();
  if (!job.dq) return;
  const V scale = V::set1(s.scale);
  for (int64_t g = 0; g < s.group; ++g)
    for (int64_t row = job.rows.begin; row < job.rows.end; ++row) {
      const int64_t p = t.mask.origin + row;
      const PackedQueries tile = t.tile(g, p / kQueryTile - t.first_tile);
      const bool some = tile.dq_started[p % kQueryTile / 32] != 0;
      const float* dq = tile.dq + p % kQueryTile * wide;
      const int64_t to = job.b * a.dq_strides.batch + row * a.dq_strides.pos + job.h * a.dq_strides.kv_head +
                         g * a.dq_strides.group;
      if (row + 16 < job.rows.end)
        for (int64_t d = 0; d < s.head_dim; d += V::kWidth) {
          const int64_t ahead = to + 16 * a.dq_strides.pos + d;
          __builtin_prefetch(
              static_cast<char*>(a.dq) + ahead * (a.grad_type == machine::FloatType::kF32 ? 4 : 2), 1);
        }
      for (int64_t d = 0; d < s.head_dim; d += V::kWidth)
        store_lanes<P>(((some ? V::load(dq + d) * scale : V::zero()) + V::zero()).v, s.head_dim - d, a.dq,
                       to + d, a.grad_type);
    }
}

}  // namespace ostro::kernels
