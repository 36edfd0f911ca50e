// use_panels_backward: attention backward on the tiles of a matrix product kernel (attention_panels.inc.h),
// one job.
//
// The matrices of scores, P and dS, lie in parts of 16 keys, [query][16]. In this form they are panels of the
// operand B of dV^T += dO^T P and dK^T += Q^T dS, whose results are [head_dim][16 keys]. dS is also
// transposed into parts of 16 queries, [key][16], which are panels of B of dQ^T += K^T dS^T. Queries lie in
// tiles of 64 that start at multiples of 64 of the absolute position. So no tile cuts a group of 32
// positions, which N7 adds together. Each tile is packed once a job. A job uses nothing but its arguments and
// its scratch memory, so threads may run different jobs at the same time. There are no errors.
#pragma once

#include "ostro/kernels/attention/kernels/attention_backward.inc.h"
#include "ostro/kernels/attention/kernels/attention_panels.inc.h"

namespace ostro::kernels {

inline constexpr int kTileParts = kQueryTile / kPartLanes, kBlockParts = kKeyBlock / kPartLanes;

// One query tile of one head.
struct PanelQueries {
  float *q, *dout;                // panels of A: queries, k counts head_dim
  float *q_turned, *dout_turned;  // panels of A: dimensions, k counts queries
  float* dq;                      // [part][wide][16]
  float *m, *r, *delta;           // saved values of the rows; zeros where there is none
};

// The state of one job: the block of keys at hand, and the places of its scratch memory.
struct PanelBackward {
  const GemmKernel& kernel;
  BackwardJob job;
  ExampleMask mask;
  int64_t wide, rows;         // head_dim, padded for vectors; rows of a panel of A
  int64_t first_tile, tiles;  // the first query tile, counted from absolute position 0, and their number
  Range block;                // of keys
  int32_t block_segments[kKeyBlock];
  float *kt, *vt;    // [part][wide][16]
  float* k_turned;   // panels of A: dimensions, k counts keys
  float *p, *ds;     // [64][16]: scores and dp, then P and dS
  float* ds_turned;  // [query part][128][16]
  float* line;       // [128][wide], rows on their way into or out of the other forms
  float *dk, *dv;    // [part][wide][16], the sums of the current leaf
  float* queries;    // the packed query tiles, [head of the group][tile]

  // The floats of panels of `lanes` rows or dimensions, with `depth` steps of k.
  static int64_t panel_floats(int64_t lanes, int64_t depth, int64_t rows) {
    return (lanes + rows - 1) / rows * rows * depth;
  }
  static int64_t tile_floats(int64_t wide, int64_t rows) {
    return 2 * (panel_floats(kQueryTile, wide, rows) + panel_floats(wide, kQueryTile, rows)) +
           kQueryTile * (wide + 3);
  }
  PanelQueries tile(int64_t g, int64_t index) const {
    float* at = queries + (g * tiles + index) * tile_floats(wide, rows);
    const int64_t natural = panel_floats(kQueryTile, wide, rows);
    const int64_t turned = panel_floats(wide, kQueryTile, rows);
    PanelQueries t;
    t.q = at;
    t.dout = t.q + natural;
    t.q_turned = t.dout + natural;
    t.dout_turned = t.q_turned + turned;
    t.dq = t.dout_turned + turned;
    t.m = t.dq + kQueryTile * wide;
    t.r = t.m + kQueryTile;
    t.delta = t.r + kQueryTile;
    return t;
  }
};

// The scratch memory that a job needs, in floats.
template <class V>
int64_t panels_backward_scratch(const AttentionBackward& a, const BackwardJob& job, int64_t rows) {
  const int64_t wide = padded(a.shape.head_dim);
  const int64_t tiles = (job.rows.end - job.rows.begin) / kQueryTile + 2;
  return (3 + 2 * leaf_partials(a)) * kKeyBlock * wide + PanelBackward::panel_floats(wide, kKeyBlock, rows) +
         (2 + kBlockParts) * kQueryTile * kPartLanes +
         a.shape.group * tiles * PanelBackward::tile_floats(wide, rows);
}

// Packs `from`, [count][wide] of f32, into panels of A whose k counts dimensions, or rows when `turned`.
template <class V>
void pack_panels_of_rows(const GemmKernel& f32, const float* from, int64_t dims, int64_t wide, int64_t count,
                         bool turned, float* out) {
  int64_t row_at[kKeyBlock], dim_at[kMaxHeadDim];
  int32_t row_run[kKeyBlock], dim_run[kMaxHeadDim];
  for (int64_t i = 0; i < count; ++i) {
    row_at[i] = i * wide;
    row_run[i] = 1;
  }
  for (int64_t d = 0; d < wide; ++d) {
    dim_at[d] = d;
    dim_run[d] = static_cast<int32_t>(wide - d);
  }
  const int64_t lanes = turned ? dims : count, depth = turned ? count : wide;
  for (int64_t w = 0; w < lanes; w += f32.mr, out += depth * f32.mr)
    f32.pack_a({.base = from,
                .w_offsets = (turned ? dim_at : row_at) + w,
                .width = static_cast<int>(lanes - w < f32.mr ? lanes - w : f32.mr),
                .w_contiguous = turned,
                .k_offsets = turned ? row_at : dim_at,
                .k_run = turned ? row_run : dim_run,
                .count = depth},
               out);
}

// Loads rows [0, count), which lie `step` elements apart, into t.line; those outside of `held` become zeros.
template <class V, bool kBf16>
inline void load_line(const PanelBackward& t, const void* from, int64_t offset, int64_t step, int64_t dims,
                      Range held, int64_t count) {
  constexpr int64_t kAhead = 16;
  for (int64_t i = 0; i < count; ++i) {
    float* to = t.line + i * t.wide;
    if (i + kAhead < count && i + kAhead >= held.begin && i + kAhead < held.end)
      fetch_row<V, false>(from, offset + (i + kAhead) * step, dims,
                          kBf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32);
    if (i >= held.begin && i < held.end)
      load_padded_row<V, kBf16>(from, offset + i * step, dims, t.wide, to);
    else
      for (int64_t d = 0; d < t.wide; ++d) to[d] = 0;
  }
}

// Packs query tile `index` of head g, with dO and the saved values of its rows. Rows that are not the job's
// become zeros. Clears the tile's dq.
template <class V, bool kBf16>
void panels_pack_queries(const GemmKernel& f32, const AttentionBackward& a, const float* delta,
                         const PanelBackward& t, int64_t g, int64_t index) {
  const AttentionShape& s = a.shape;
  const PanelQueries out = t.tile(g, index);
  const int64_t row0 = (t.first_tile + index) * kQueryTile - t.mask.origin;
  const auto held = [&](int64_t i) { return row0 + i >= t.job.rows.begin && row0 + i < t.job.rows.end; };
  const auto pack = [&](const void* from, const QueryStrides& st, float* rows, float* turned) {
    load_line<V, kBf16>(t, from, t.job.b * st.batch + row0 * st.pos + t.job.h * st.kv_head + g * st.group,
                        st.pos, s.head_dim, {t.job.rows.begin - row0, t.job.rows.end - row0}, kQueryTile);
    pack_panels_of_rows<V>(f32, t.line, s.head_dim, t.wide, kQueryTile, false, rows);
    if (t.job.dkv) pack_panels_of_rows<V>(f32, t.line, s.head_dim, t.wide, kQueryTile, true, turned);
  };
  pack(a.q, a.q_strides, out.q, out.q_turned);
  pack(a.dout, a.dout_strides, out.dout, out.dout_turned);
  for (int64_t i = 0; i < kQueryTile; ++i) {
    const int64_t saved = ((t.job.b * s.pos + row0 + i) * s.kv_heads + t.job.h) * s.group + g;
    out.m[i] = held(i) ? a.m[saved] : 0;
    out.r[i] = held(i) ? a.r[saved] : 0;
    out.delta[i] = held(i) ? delta[saved] : 0;
  }
  for (int64_t i = 0; t.job.dq && i < kQueryTile * t.wide; ++i) out.dq[i] = 0;
}

// Packs the keys and values of t.block; those behind its end become zeros.
template <class V, bool kBf16>
void panels_pack_keys(const GemmKernel& f32, const AttentionBackward& a, PanelBackward& t) {
  const int64_t dims = a.shape.head_dim, count = t.block.end - t.block.begin;
  const auto load = [&](const void* from, const KeyStrides& st, float* parts) {
    load_line<V, kBf16>(t, from, t.job.b * st.batch + t.block.begin * st.pos + t.job.h * st.kv_head, st.pos,
                        dims, {0, count}, kKeyBlock);
    for (int64_t j = 0; j < kKeyBlock; j += V::kWidth)
      for (int64_t d = 0; d < t.wide; d += V::kWidth)
        V::transpose(t.line + j * t.wide + d, t.wide,
                     parts + (j / kPartLanes * t.wide + d) * kPartLanes + j % kPartLanes, kPartLanes);
  };
  load(a.v, a.v_strides, t.vt);
  load(a.k, a.k_strides, t.kt);
  if (t.job.dq) pack_panels_of_rows<V>(f32, t.line, dims, t.wide, kKeyBlock, true, t.k_turned);
  for (int64_t j = 0; j < kKeyBlock; ++j)
    t.block_segments[j] =
        t.mask.key_segments != nullptr && j < count ? t.mask.key_segments[t.block.begin + j] : 0;
}

// Turns the scores and dP of some query rows and 16 keys into P and dS, in place. Bit j of words[i]: row i
// attends to key j; read with kMasked only.
template <class V, bool kBf16, bool kMasked>
inline void panel_gradients(const AttentionShape& s, const PanelBackward& t, const PanelQueries& q,
                            Range rows, const uint16_t* words) {
  const bool capped = s.soft_cap > 0;
  const V kappa = score_factor<V>(s);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    float *p = t.p + i * kPartLanes, *ds = t.ds + i * kPartLanes;
    float inner[kPartLanes];
    if (capped) {
      machine::tanh_of_scores(p, inner, kPartLanes, s.scale, s.soft_cap);
      for (int j = 0; j < kPartLanes; ++j) p[j] = s.soft_cap * inner[j];
    }
    const V m = V::set1(q.m[i]), r = V::set1(q.r[i]), delta = V::set1(q.delta[i]);
    for (int j = 0; j < kPartLanes; j += V::kWidth) {
      auto [pv, dsv] = score_gradients<V, kBf16>(V::load(p + j), V::load(ds + j), m, r, delta, kappa,
                                                 capped ? inner + j : nullptr);
      if constexpr (kMasked) {
        const auto mask = V::mask(static_cast<uint32_t>(words[i]) >> j);
        pv = V::select(mask, pv, V::zero());
        dsv = V::select(mask, dsv, V::zero());
      }
      pv.store(p + j);
      dsv.store(ds + j);
    }
  }
}

// Adds what query rows `rows` of head g, which lie in one tile, contribute to dk, dv and dq of t.block.
//
// First it finds which of the rows attend to which keys. Then, for each 16 keys that any of them attends to:
// scores and dP are multiplied out, P and dS follow in place, both are added to dv and dk, and dS is
// transposed. At the end dq gets the products of all transposed parts.
template <class V, bool kBf16>
void panels_backward_tile(const AttentionBackward& a, const PanelBackward& t, int64_t g, Range rows) {
  constexpr int64_t kUnit = kBf16 ? 32 : 1;  // N7 takes whole groups, some with p = ds = +0
  constexpr int64_t kStep = kBf16 ? 32 : V::kWidth;
  const int64_t dims = a.shape.head_dim, wide = t.wide, depth = kBf16 ? wide : dims;
  const int64_t index = (t.mask.origin + rows.begin) / kQueryTile - t.first_tile;
  const int64_t row0 = (t.first_tile + index) * kQueryTile - t.mask.origin;
  const PanelQueries q = t.tile(g, index);

  uint16_t words[kBlockParts][kQueryTile] = {};
  Range part_rows[kBlockParts], part_keys[kTileParts];  // by part of keys, and by part of queries
  for (Range& r : part_rows) r = {kQueryTile, 0};
  for (Range& r : part_keys) r = {kKeyBlock, 0};
  Range keys{kKeyBlock, 0};
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const KeyBits bits = backward_bits<V>(t.mask, row, t.block, t.block_segments);
    if ((bits.low | bits.high) == 0) continue;
    const int64_t i = row - row0;
    for (int part = 0; part < kBlockParts; ++part) {
      const int at = part * kPartLanes;
      words[part][i] = static_cast<uint16_t>(at < 64 ? bits.low >> at : bits.high >> (at - 64));
      if (words[part][i] == 0) continue;
      if (part_rows[part].end == 0) part_rows[part].begin = i;
      part_rows[part].end = i + 1;
    }
    Range& r = part_keys[i / kPartLanes];
    const int64_t first = bits.low != 0 ? __builtin_ctzll(bits.low) : 64 + __builtin_ctzll(bits.high);
    const int64_t last = bits.high != 0 ? 127 - __builtin_clzll(bits.high) : 63 - __builtin_clzll(bits.low);
    if (first < r.begin) r.begin = first / kUnit * kUnit;
    if (last >= r.end) r.end = (last / kUnit + 1) * kUnit;
    if (r.begin < keys.begin) keys.begin = r.begin;
    if (r.end > keys.end) keys.end = r.end;
  }
  // C[i][16] (+)= sum over k of A(i, k) * B[k][16], panels of A `stride` floats apart.
  const auto multiply = [&](int64_t k, const float* panels, int64_t stride, const float* b, float* c,
                            int64_t first, int64_t end, bool from_zero) {
    for (int64_t i = first / t.rows * t.rows; i < end; i += t.rows)
      t.kernel.multiply(k, panels + i / t.rows * stride, b, c + i * kPartLanes, kPartLanes,
                        static_cast<int>(end - i < t.rows ? end - i : t.rows), from_zero);
  };
  for (int64_t key = keys.begin / kPartLanes * kPartLanes; key < keys.end; key += kPartLanes) {
    const int64_t part = key / kPartLanes;
    const Range seen = part_rows[part];
    Range made{seen.begin / kStep * kStep, (seen.end + kStep - 1) / kStep * kStep};
    if (seen.begin >= seen.end) made = {0, 0};
    if (made.begin < made.end) {
      multiply(depth, q.q, wide * t.rows, t.kt + part * wide * kPartLanes, t.p, made.begin, made.end, true);
      multiply(depth, q.dout, wide * t.rows, t.vt + part * wide * kPartLanes, t.ds, made.begin, made.end,
               true);
      bool full = true;
      for (int64_t i = made.begin; i < made.end; ++i) full = full && words[part][i] == 0xffff;
      if (full)
        panel_gradients<V, kBf16, false>(a.shape, t, q, made, nullptr);
      else
        panel_gradients<V, kBf16, true>(a.shape, t, q, made, words[part]);
    }
    if (t.job.dkv && made.begin < made.end) {
      const int64_t from = seen.begin / kUnit * kUnit, count = (seen.end + kUnit - 1) / kUnit * kUnit - from;
      const int64_t stride = kQueryTile * t.rows, at = part * wide * kPartLanes;
      multiply(count, q.dout_turned + from * t.rows, stride, t.p + from * kPartLanes, t.dv + at, 0, dims,
               false);
      multiply(count, q.q_turned + from * t.rows, stride, t.ds + from * kPartLanes, t.dk + at, 0, dims,
               false);
    }
    for (int64_t i = 0; t.job.dq && i < kQueryTile; i += V::kWidth) {
      const Range& wanted = part_keys[i / kPartLanes];
      if (wanted.begin >= key + kPartLanes || wanted.end <= key) continue;
      float* to = t.ds_turned + (i / kPartLanes * kKeyBlock + key) * kPartLanes + i % kPartLanes;
      if (i >= made.begin && i < made.end) {
        for (int j = 0; j < kPartLanes; j += V::kWidth)
          V::transpose(t.ds + i * kPartLanes + j, kPartLanes, to + j * kPartLanes, kPartLanes);
      } else {
        for (int j = 0; j < kPartLanes; ++j) V::zero().store(to + j * kPartLanes);
      }
    }
  }
  for (int part = 0; t.job.dq && part < kTileParts; ++part) {
    const Range r = part_keys[part];
    if (r.begin >= r.end) continue;
    multiply(r.end - r.begin, t.k_turned + r.begin * t.rows, kKeyBlock * t.rows,
             t.ds_turned + (part * kKeyBlock + r.begin) * kPartLanes, q.dq + part * wide * kPartLanes, 0,
             dims, false);
  }
}

// Stores `lanes` of a part [wide][16], times `scale` and with -0 made +0, as rows that lie `step` elements
// apart.
template <class V>
inline void store_part(const PanelBackward& t, float* part, float scale, Range lanes, void* out,
                       int64_t offset, int64_t step, const AttentionBackward& a) {
  const int64_t dims = a.shape.head_dim, first = offset - lanes.begin * step;
  for (int64_t i = lanes.begin; i < lanes.end; ++i)
    fetch_row<V, true>(out, first + i * step, dims, a.grad_type);
  for (int64_t i = 0; i < t.wide * kPartLanes; i += V::kWidth)
    (V::load(part + i) * V::set1(scale) + V::zero()).store(part + i);
  for (int64_t d = 0; d < t.wide; d += V::kWidth)
    for (int j = 0; j < kPartLanes; j += V::kWidth)
      V::transpose(part + d * kPartLanes + j, kPartLanes, t.line + j * t.wide + d, t.wide);
  for (int64_t i = lanes.begin; i < lanes.end; ++i)
    store_row<V>(t.line + i * t.wide, dims, out, first + i * step, a.grad_type);
}

// Runs one job: packs its query tiles, then goes over blocks of keys, leaves of queries, heads and query
// tiles, each in ascending order. The sums dk and dv of the leaves are merged in the tree of N8 and stored
// after each block; dq adds up over the blocks and is stored at the end. `scratch` has as many floats as
// panels_backward_scratch says.
template <class V, bool kBf16>
void panels_backward_job(const GemmKernel& kernel, const GemmKernel& f32, const AttentionBackward& a,
                         const float* delta, const BackwardJob& job, float* scratch) {
  const AttentionShape& s = a.shape;
  const int64_t dims = s.head_dim, wide = padded(dims), tile = kKeyBlock * wide;
  PanelBackward t{
      .kernel = kernel, .job = job, .mask = example_mask<V>(s, job.b), .wide = wide, .rows = kernel.mr};
  const int64_t first = t.mask.origin + job.rows.begin, end = t.mask.origin + job.rows.end;
  t.first_tile = first / kQueryTile;
  t.tiles = first < end ? (end - 1) / kQueryTile - t.first_tile + 1 : 0;
  t.kt = scratch;
  t.vt = t.kt + tile;
  t.line = t.vt + tile;
  t.k_turned = t.line + tile;
  t.p = t.k_turned + PanelBackward::panel_floats(wide, kKeyBlock, t.rows);
  t.ds = t.p + kQueryTile * kPartLanes;
  t.ds_turned = t.ds + kQueryTile * kPartLanes;
  float* partials = t.ds_turned + kQueryTile * kKeyBlock;  // a stack of subtrees of leaves, dk then dv each
  t.queries = partials + 2 * leaf_partials(a) * tile;
  const bool one_leaf = a.query_leaf_ends.empty() || !job.dkv;
  const int64_t leaves = one_leaf ? 1 : static_cast<int64_t>(a.query_leaf_ends.size());
  for (int64_t g = 0; g < s.group; ++g)
    for (int64_t i = 0; i < t.tiles; ++i) panels_pack_queries<V, kBf16>(f32, a, delta, t, g, i);

  const Range reach = t.tiles == 0 ? Range{0, 0} : reachable_keys<V>(t.mask, first, end - 1);
  for (int64_t block = job.keys.begin; block < job.keys.end; block += kKeyBlock) {
    t.block = {block, block + kKeyBlock < job.keys.end ? block + kKeyBlock : job.keys.end};
    const bool visited = reach.begin < t.block.end && reach.end > t.block.begin;
    if (visited) panels_pack_keys<V, kBf16>(f32, a, t);
    int64_t depth = 0;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      t.dk = partials + 2 * depth * tile;
      t.dv = t.dk + tile;
      for (int64_t i = 0; job.dkv && i < 2 * tile; i += V::kWidth) V::zero().store(t.dk + i);
      ++depth;
      Range rows = job.rows;
      if (!one_leaf) {
        if (leaf > 0) rows.begin = a.query_leaf_ends[static_cast<size_t>(leaf - 1)];
        rows.end = a.query_leaf_ends[static_cast<size_t>(leaf)];
      }
      for (int64_t g = 0; visited && g < s.group; ++g)
        for_query_tiles<V>(t.mask, rows, t.block,
                           [&](Range r) { panels_backward_tile<V, kBf16>(a, t, g, r); });
      merge_leaves<V>(partials, 2 * tile, leaf, leaf + 1 == leaves, &depth);
    }
    for (int64_t j = block; job.dkv && j < t.block.end; j += kPartLanes) {
      const Range lanes{0, t.block.end - j < kPartLanes ? t.block.end - j : kPartLanes};
      float* dk = partials + (j - block) * wide;
      const auto at = [&](const KeyStrides& st) {
        return job.b * st.batch + j * st.pos + job.h * st.kv_head;
      };
      store_part<V>(t, dk, a.partial ? 1.0f : s.scale, lanes, a.dk, at(a.dk_strides), a.dk_strides.pos, a);
      store_part<V>(t, dk + tile, 1.0f, lanes, a.dv, at(a.dv_strides), a.dv_strides.pos, a);
    }
  }
  const QueryStrides& st = a.dq_strides;
  for (int64_t g = 0; job.dq && g < s.group; ++g)
    for (int64_t i = job.rows.begin; i < job.rows.end;) {
      const int64_t at = (t.mask.origin + i) % kQueryTile, lane = at % kPartLanes;
      const int64_t end_lane = job.rows.end - i < kPartLanes - lane ? job.rows.end - i + lane : kPartLanes;
      const PanelQueries q = t.tile(g, (t.mask.origin + i) / kQueryTile - t.first_tile);
      store_part<V>(t, q.dq + (at - lane) * wide, s.scale, {lane, end_lane}, a.dq,
                    job.b * st.batch + i * st.pos + job.h * st.kv_head + g * st.group, st.pos, a);
      i += end_lane - lane;
    }
}

// Replaces the backward functions of a table by those of this file, with the matrix product kernels kF32 and
// kBf16 of the same instruction set.
template <class V, const GemmKernel& (*kF32)(), const GemmKernel& (*kBf16)()>
inline void use_panels_backward(AttentionKernels& t) {
  t.backward = [](const AttentionBackward& a, const float* delta, const BackwardJob& job, float* scratch) {
    if (a.shape.type == machine::FloatType::kBf16)
      panels_backward_job<V, true>(kBf16(), kF32(), a, delta, job, scratch);
    else
      panels_backward_job<V, false>(kF32(), kF32(), a, delta, job, scratch);
  };
  t.backward_scratch = [](const AttentionBackward& a, const BackwardJob& job) {
    return panels_backward_scratch<V>(a, job, kF32().mr);
  };
}

}  // namespace ostro::kernels
