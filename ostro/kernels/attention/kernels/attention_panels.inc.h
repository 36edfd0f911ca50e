// use_panels: attention forward on the tiles of a matrix product kernel (gemm_kernel.h) whose panels of B are
// f32 rows of 16.
//
// K and V are packed once as panels of A, [k][rows of a tile], and read by all query rows and all heads of a
// group. Lanes are queries, 16 a part; a part's queries, scores and accumulator are panels of their own,
// [k][16], which L1 holds beside the tile at work.
#pragma once

#include "ostro/kernels/attention/kernels/attention_tile.inc.h"
#include "ostro/machine/vector/exp2.inc.h"
#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {

inline constexpr int kPartLanes = 16;

// Floats of a packed key block: K in panels of keys, then V^T in panels of dimensions.
struct PanelBlock {
  int64_t key_panels, key_stride, dim_panels, dim_stride;

  int64_t floats() const { return key_panels * key_stride + dim_panels * dim_stride; }
};

// The layout of a key block for panels of `rows` rows.
template <class V>
inline PanelBlock panel_block(int64_t head_dim, int64_t rows) {
  return {(kKeyBlock + rows - 1) / rows, padded(head_dim) * rows, (head_dim + rows - 1) / rows,
          kKeyBlock * rows};
}

// The scratch memory that panels_forward_item needs, in floats.
template <class V>
inline int64_t panels_scratch(const AttentionForward& a) {
  const int64_t wide = padded(a.shape.head_dim);
  return (2 * kQueryTile + V::kWidth) * wide + kKeyBlock * kPartLanes;
}

// Packs key block `item`, counted over (example, kv head, block), unless no query reaches it.
template <class V>
inline void panels_pack(const GemmKernel& kernel, const AttentionForward& a, int64_t item, void* packed) {
  const AttentionShape& s = a.shape;
  const int64_t blocks = (s.key_pos + kKeyBlock - 1) / kKeyBlock, dims = s.head_dim, rows = kernel.mr;
  const int64_t begin = item % blocks * kKeyBlock;
  const int64_t h = item / blocks % s.kv_heads, b = item / blocks / s.kv_heads;
  const ExampleMask mask = example_mask<V>(s, b);
  const Range reach = reachable_keys<V>(mask, mask.origin, mask.origin + s.pos - 1);
  if (begin >= reach.end || begin + kKeyBlock <= reach.begin) return;
  const int64_t keys = s.key_pos - begin < kKeyBlock ? s.key_pos - begin : kKeyBlock;
  const PanelBlock block = panel_block<V>(dims, rows);
  float* out = static_cast<float*>(packed) + item * block.floats();
  int64_t k_at[kKeyBlock], v_at[kKeyBlock], dim_at[kMaxHeadDim];
  int32_t dim_run[kMaxHeadDim], key_run[kKeyBlock];
  for (int64_t j = 0; j < keys; ++j) {
    k_at[j] = b * a.k_strides.batch + (begin + j) * a.k_strides.pos + h * a.k_strides.kv_head;
    v_at[j] = b * a.v_strides.batch + (begin + j) * a.v_strides.pos + h * a.v_strides.kv_head;
    key_run[j] = 1;
  }
  for (int64_t d = 0; d < dims; ++d) {
    dim_at[d] = d;
    dim_run[d] = static_cast<int32_t>(dims - d);
  }
  for (int64_t j = 0; j < keys; j += rows, out += block.key_stride)
    kernel.pack_a({.base = a.k,
                   .w_offsets = k_at + j,
                   .width = static_cast<int>(keys - j < rows ? keys - j : rows),
                   .w_contiguous = false,
                   .k_offsets = dim_at,
                   .k_run = dim_run,
                   .count = dims},
                  out);
  out = static_cast<float*>(packed) + item * block.floats() + block.key_panels * block.key_stride;
  for (int64_t d = 0; d < dims; d += rows, out += block.dim_stride)
    kernel.pack_a({.base = a.v,
                   .w_offsets = dim_at + d,
                   .width = static_cast<int>(dims - d < rows ? dims - d : rows),
                   .w_contiguous = true,
                   .k_offsets = v_at,
                   .k_run = key_run,
                   .count = keys},
                  out);
}

// Processes scores [key][16] of `keys` for V::kWidth of the queries: turns them into p and updates m and l.
// Returns the factor by which what was accumulated so far must be multiplied. With kMasked, bit `lane` of
// words[j] says whether that query attends to key j.
template <class V, bool kBf16, bool kMasked>
inline V panel_softmax(float* scores, Range keys, const uint64_t* words, int lane, V kappa, float* m,
                       float* l) {
  const auto lanes_of = [&](int64_t j) { return V::mask(static_cast<uint32_t>(words[j] >> lane)); };
  const V before = V::load(m);
  const auto unmasked = [&](int64_t j) {
    const V x = V::load(scores + j * kPartLanes);
    if constexpr (kMasked) return V::select(lanes_of(j), x, before);
    return x;
  };
  V even = before, odd = before;
  for (int64_t j = keys.begin; j + 1 < keys.end; j += 2) {
    even = V::max(unmasked(j), even);
    odd = V::max(unmasked(j + 1), odd);
  }
  const V highest = V::max(V::max(unmasked(keys.end - 1), even), odd);
  const V c = machine::exp2_below<V>(before, highest, kappa);
  V sum = V::load(l) * c;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    V e = machine::exp2_below<V>(V::load(scores + j * kPartLanes), highest, kappa);
    if constexpr (kMasked) e = V::select(lanes_of(j), e, V::zero());
    sum = sum + e;
    if constexpr (kBf16) e = V::round_bf16(e);
    e.store(scores + j * kPartLanes);
  }
  highest.store(m);
  sum.store(l);
  return c;
}

// The steps of attention_forward_item, block of 128 keys by block, for each part of 16 queries by itself: a
// part cuts off, at both ends of a block, the keys that none of its queries attends to, and rescales its
// accumulator only when a maximum changed. The first product of a part writes the accumulator (`started`), so
// it is not cleared before.
template <class V, bool kBf16>
void panels_forward_item(const GemmKernel& kernel, const AttentionForward& a, const void* packed,
                         int64_t item, float* scratch) {
  constexpr int kW = V::kWidth, kParts = kQueryTile / kPartLanes;
  const AttentionShape& s = a.shape;
  const int64_t dims = s.head_dim, wide = padded(dims), rows = kernel.mr;
  const ForwardTile tile = forward_tile<V>(s, item);
  float* qt = scratch;                   // parts of [wide][16]
  float* ot = qt + wide * kQueryTile;    // the same
  float* line = ot + wide * kQueryTile;  // [vector width][wide]
  float* scores = line + kW * wide;      // [128][16], then p
  const auto panel = [&](float* of, int lane) {
    return of + lane / kPartLanes * kPartLanes * wide + lane % kPartLanes;
  };
  const auto row_of = [&](int64_t lane, const QueryStrides& st) { return tile.offset(lane, s.group, st); };
  const int parts = (tile.lanes + kPartLanes - 1) / kPartLanes;
  for (int i = 0; i < parts * kPartLanes; i += kW) {
    for (int n = 0; n < kW; ++n) {
      if (i + n < tile.lanes)
        load_padded_row<V, kBf16>(a.q, row_of(i + n, a.q_strides), dims, wide, line + n * wide);
      else
        for (int64_t d = 0; d < wide; ++d) line[n * wide + d] = 0;
    }
    for (int64_t d = 0; d < wide; d += kW)
      V::transpose(line + d, wide, panel(qt, i) + d * kPartLanes, kPartLanes);
  }
  for (int i = 0; i < tile.lanes; ++i) {
    fetch_row<V, true>(a.out, row_of(i, a.out_strides), dims, a.out_type);
    if (tile.first >= kQueryTile)  // the tile that is likely to be the next one
      fetch_row<V, false>(a.q, row_of(i - kQueryTile, a.q_strides), dims, s.type);
  }

  const bool capped = s.soft_cap > 0;
  const V kappa = score_factor<V>(s);
  float m[kQueryTile], l[kQueryTile];
  first_maximum<V>(s, tile, m, l);
  Range reach[kParts], common[kParts];
  bool started[kParts] = {};
  for (int part = 0; part < parts; ++part) {
    const int end = (part + 1) * kPartLanes;
    reach[part] =
        lane_keys<V>(s, tile, part * kPartLanes, end < tile.lanes ? end : tile.lanes, &common[part]);
  }
  const PanelBlock shape = panel_block<V>(dims, rows);
  const int64_t blocks = (s.key_pos + kKeyBlock - 1) / kKeyBlock;
  const float* head =
      static_cast<const float*>(packed) + (tile.b * s.kv_heads + tile.h) * blocks * shape.floats();
  for (int64_t block = reach[0].begin / kKeyBlock * kKeyBlock; block < reach[parts - 1].end;
       block += kKeyBlock) {
    const float* k = head + block / kKeyBlock * shape.floats();
    const float* vt = k + shape.key_panels * shape.key_stride;
    uint64_t words[kKeyBlock];
    bool have_words = false;
    for (int part = 0; part < parts; ++part) {
      // N7 takes whole groups of 32 keys, some with p = +0.
      constexpr int64_t kUnit = kBf16 ? 32 : 1;
      Range keys{clamp<V>(reach[part].begin - block, 0, kKeyBlock) / kUnit * kUnit,
                 (clamp<V>(reach[part].end - block, 0, kKeyBlock) + kUnit - 1) / kUnit * kUnit};
      if (keys.begin >= keys.end) continue;
      const bool unmasked = !tile.mask.by_element() && common[part].begin <= block + keys.begin &&
                            common[part].end >= block + keys.end;
      if (!unmasked) {
        if (!have_words) forward_words<V>(tile, s.group, {block, block + kKeyBlock}, words);
        have_words = true;
        const auto empty = [&](int64_t group) {
          uint64_t any = 0;
          for (int64_t j = group; j < group + kUnit; ++j) any |= words[j];
          return (any >> (part * kPartLanes) & 0xffffu) == 0;
        };
        while (keys.begin < keys.end && empty(keys.begin)) keys.begin += kUnit;
        while (keys.begin < keys.end && empty(keys.end - kUnit)) keys.end -= kUnit;
        if (keys.begin >= keys.end) continue;
      }
      for (int64_t j = keys.begin / rows * rows; j < keys.end; j += rows)
        kernel.multiply(kBf16 ? wide : dims, k + j / rows * shape.key_stride, qt + part * kPartLanes * wide,
                        scores + j * kPartLanes, kPartLanes,
                        static_cast<int>(kKeyBlock - j < rows ? kKeyBlock - j : rows), true);
      if (capped)
        machine::cap_scores(scores + keys.begin * kPartLanes, (keys.end - keys.begin) * kPartLanes, s.scale,
                            s.soft_cap);
      for (int v = 0; v < kPartLanes; v += kW) {
        const int lane = part * kPartLanes + v;
        const V c =
            unmasked
                ? panel_softmax<V, kBf16, false>(scores + v, keys, words, lane, kappa, m + lane, l + lane)
                : panel_softmax<V, kBf16, true>(scores + v, keys, words, lane, kappa, m + lane, l + lane);
        if (!started[part] || V::all_one(c)) continue;
        float* o = panel(ot, lane);
        for (int64_t d = 0; d < dims; ++d, o += kPartLanes) (V::load(o) * c).store(o);
      }
      for (int64_t d = 0; d < dims; d += rows)
        kernel.multiply(keys.end - keys.begin, vt + d / rows * shape.dim_stride + keys.begin * rows,
                        scores + keys.begin * kPartLanes, panel(ot, part * kPartLanes) + d * kPartLanes,
                        kPartLanes, static_cast<int>(dims - d < rows ? dims - d : rows), !started[part]);
      started[part] = true;
    }
  }

  store_statistics<V>(a, tile, m, l);
  for (int i = 0; i < tile.lanes; i += kW) {
    const V r = V::load(l + i);
    float* o = panel(ot, i);
    for (int64_t d = 0; d < wide; ++d) {
      const V x = started[i / kPartLanes] && d < dims ? V::load(o + d * kPartLanes) : V::zero();
      ((x + V::zero()) * r).store(o + d * kPartLanes);
    }
    for (int64_t d = 0; d < wide; d += kW) V::transpose(o + d * kPartLanes, kPartLanes, line + d, wide);
    for (int n = 0; n < kW && i + n < tile.lanes; ++n)
      store_row<V>(line + n * wide, dims, a.out, row_of(i + n, a.out_strides), a.out_type);
  }
}

// Puts these functions into a table in place of its forward part.
template <class V, const GemmKernel& (*kF32)(), const GemmKernel& (*kBf16)()>
inline void use_panels(AttentionKernels& t) {
  t.packed_bytes = [](const AttentionForward& a) {
    const int64_t rows = a.shape.type == machine::FloatType::kBf16 ? kBf16().mr : kF32().mr;
    return key_block_items(a.shape) * panel_block<V>(a.shape.head_dim, rows).floats() * 4;
  };
  t.pack = [](const AttentionForward& a, int64_t item, void* packed, float*) {
    panels_pack<V>(a.shape.type == machine::FloatType::kBf16 ? kBf16() : kF32(), a, item, packed);
  };
  t.forward = [](const AttentionForward& a, const void* packed, int64_t item, float* scratch) {
    if (a.shape.type == machine::FloatType::kBf16)
      panels_forward_item<V, true>(kBf16(), a, packed, item, scratch);
    else
      panels_forward_item<V, false>(kF32(), a, packed, item, scratch);
  };
  t.forward_scratch = panels_scratch<V>;
}

}  // namespace ostro::kernels
