// packed_forward_item, packed_forward_pack: bf16 attention forward on matrix instructions
// (attention_packed.inc.h), one tile of 64 query rows.
//
// As in attention_forward.inc.h lanes are queries, S^T = K Q^T and O^T += V^T P^T; p is rounded and paired
// straight into words of B. K and V are packed once and read by all tiles and all heads of a group.
#pragma once

#include "ostro/kernels/attention/kernels/attention_packed.inc.h"
#include "ostro/kernels/attention/kernels/attention_tile.inc.h"
#include "ostro/machine/vector/exp2.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::kernels {

// A packed key block: K as rows [128][wide], then V^T as rows [wide][128].
constexpr int64_t packed_block_elements(int64_t head_dim) { return 2 * kKeyBlock * padded(head_dim); }

template <class P>
int64_t packed_forward_bytes(const AttentionForward& a) {
  return key_block_items(a.shape) * packed_block_elements(a.shape.head_dim) * 2;
}

// Floats of scratch of one item of either kind.
template <class P>
int64_t packed_forward_scratch(const AttentionForward& a) {
  return padded(a.shape.head_dim) * (kQueryTile + kQueryTile / 2 + kKeyBlock) + kKeyBlock * kLaneBlock +
         kKeyBlock / 2 * kLaneBlock;
}

// Packs key block `item`, counted over (example, kv head, block), unless no query reaches it.
template <class P>
void packed_forward_pack(const AttentionForward& a, int64_t item, void* packed, float* scratch) {
  const AttentionShape& s = a.shape;
  const int64_t blocks = (s.key_pos + kKeyBlock - 1) / kKeyBlock, wide = padded(s.head_dim);
  const int64_t begin = item % blocks * kKeyBlock;
  const int64_t h = item / blocks % s.kv_heads, b = item / blocks / s.kv_heads;
  const ExampleMask mask = example_mask<machine::VecAvx512>(s, b);
  const Range reach = reachable_keys<machine::VecAvx512>(mask, mask.origin, mask.origin + s.pos - 1);
  if (begin >= reach.end || begin + kKeyBlock <= reach.begin) return;
  uint16_t* k = static_cast<uint16_t*>(packed) + item * packed_block_elements(s.head_dim);
  uint16_t* v = reinterpret_cast<uint16_t*>(scratch);                             // [128][wide]
  uint32_t* pairs = reinterpret_cast<uint32_t*>(scratch) + kKeyBlock / 2 * wide;  // [64][wide]
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    const auto row = [&](const void* from, const KeyStrides& st) {
      if (begin + j >= s.key_pos) return static_cast<const uint16_t*>(nullptr);
      return static_cast<const uint16_t*>(from) + b * st.batch + (begin + j) * st.pos + h * st.kv_head;
    };
    copy_row<P>(row(a.k, a.k_strides), s.head_dim, wide, k + j * wide);
    copy_row<P>(row(a.v, a.v_strides), s.head_dim, wide, v + j * wide);
  }
  order_rows<P>(k, kKeyBlock * wide);
  pair_rows<P>(v, wide, kKeyBlock, pairs);
  transpose_words<P>(pairs, wide, kKeyBlock / 2, wide, k + kKeyBlock * wide, kKeyBlock / 2);
}

// Processes `keys` of a block (whole quads) for 16 queries: turns scores [key][32] into words of P and
// updates m and l. c is the factor by which what was accumulated so far must be multiplied. Bit i of masks[4
// j]: lane i attends to key j.
template <class P, bool kMasked>
inline machine::VecAvx512 softmax_lanes(const float* s, Range keys, const uint16_t* masks,
                                        machine::VecAvx512 kappa, float* m, float* l, uint32_t* words) {
  using V = machine::VecAvx512;
  const V before = V::load(m);
  V top[4] = {before, before, before, before};
  for (int64_t j = keys.begin; j < keys.end; j += 4)
    for (int i = 0; i < 4; ++i) {
      const V x = V::load(s + (j + i) * kLaneBlock);
      if constexpr (kMasked)
        top[i].v = _mm512_mask_max_ps(top[i].v, masks[4 * (j + i)], x.v, top[i].v);
      else
        top[i] = V::max(x, top[i]);
    }
  const V highest = V::max(V::max(top[0], top[1]), V::max(top[2], top[3]));
  const V c = machine::exp2_below<V>(before, highest, kappa);
  V sum = V::load(l) * c;
  for (int64_t j = keys.begin; j < keys.end; j += 4) {
    __m512 p[4];
    for (int i = 0; i < 4; ++i) {
      V e = machine::exp2_below<V>(V::load(s + (j + i) * kLaneBlock), highest, kappa);
      if constexpr (kMasked) e.v = _mm512_maskz_mov_ps(masks[4 * (j + i)], e.v);
      sum = sum + e;
      p[i] = e.v;
    }
    store_words<P>(round_quad<P>(p), static_cast<int>(j % 32 / 4), words + j / 32 * 16 * kLaneBlock,
                   kLaneBlock);
  }
  highest.store(m);
  sum.store(l);
  return c;
}

// The steps of attention_forward_item, block of 128 keys by block, for each part of 32 queries by itself: a
// part takes whole groups of 32 keys, cuts off those at both ends of a block that none of its queries attends
// to, and rescales its accumulator only when a maximum changed. The first product of a part writes the
// accumulator (`started`).
template <class P>
void packed_forward_item(const AttentionForward& a, const void* packed, int64_t item, float* scratch) {
  using V = machine::VecAvx512;
  const AttentionShape& s = a.shape;
  const int64_t dims = s.head_dim, wide = padded(dims), rows16 = (dims + 15) / 16 * 16;
  const ForwardTile tile = forward_tile<V>(s, item);
  uint32_t* qt = reinterpret_cast<uint32_t*>(scratch);  // words [wide / 2][64]
  float* ot = scratch + wide * kQueryTile / 2;          // [wide][64]
  float* scores = ot + wide * kQueryTile;               // [128][32]
  float* words = scores + kKeyBlock * kLaneBlock;       // of P, [64][32]
  uint16_t* q = reinterpret_cast<uint16_t*>(ot);        // rows, until they are turned
  for (int i = 0; i < kQueryTile; ++i)
    copy_row<P>(
        i < tile.lanes ? static_cast<const uint16_t*>(a.q) + tile.offset(i, s.group, a.q_strides) : nullptr,
        dims, wide, q + i * wide);
  // Prefetch what is needed next: rows are too far apart for the hardware prefetcher.
  const int64_t out_size = a.out_type == machine::FloatType::kF32 ? 4 : 2;
  for (int i = 0; i < tile.lanes; ++i) {
    const int64_t out = tile.offset(i, s.group, a.out_strides) * out_size;
    for (int64_t d = 0; d < dims * out_size; d += 64)
      __builtin_prefetch(static_cast<const char*>(a.out) + out + d, 1, 2);
    if (tile.first < kQueryTile) continue;
    const int64_t next = tile.offset(i - kQueryTile, s.group, a.q_strides);
    for (int64_t d = 0; d < dims; d += 32)
      __builtin_prefetch(static_cast<const uint16_t*>(a.q) + next + d, 0, 2);
  }
  order_rows<P>(q, kQueryTile * wide);
  transpose_words<P>(q, wide / 2, kQueryTile, wide / 2, qt, kQueryTile);

  const bool capped = s.soft_cap > 0;
  const V kappa = score_factor<V>(s);
  float m[kQueryTile], l[kQueryTile];
  first_maximum<V>(s, tile, m, l);

  // Blocks of 32 lanes: their keys, and whether anything lies in their accumulator.
  constexpr int kParts = kQueryTile / kLaneBlock;
  const int parts = (tile.lanes + kLaneBlock - 1) / kLaneBlock;
  Range reach[kParts], common[kParts];
  bool started[kParts] = {};
  for (int part = 0; part < parts; ++part) {
    const int end = (part + 1) * kLaneBlock;
    reach[part] =
        lane_keys<V>(s, tile, part * kLaneBlock, end < tile.lanes ? end : tile.lanes, &common[part]);
  }
  const int64_t first = reach[0].begin / kKeyBlock * kKeyBlock;
  const int64_t blocks = (s.key_pos + kKeyBlock - 1) / kKeyBlock;
  const uint16_t* head = static_cast<const uint16_t*>(packed) +
                         (tile.b * s.kv_heads + tile.h) * blocks * packed_block_elements(dims);
  P::enter();
  for (int64_t block = first; block < reach[parts - 1].end; block += kKeyBlock) {
    const uint16_t* k = head + block / kKeyBlock * packed_block_elements(dims);
    const uint16_t* vt = k + kKeyBlock * wide;
    uint64_t bits[kKeyBlock];
    uint16_t masks[4 * kKeyBlock];  // the same
    bool have_bits = false;
    for (int part = 0; part < parts; ++part) {
      // Groups of 32 keys that the part reaches.
      Range keys{clamp<V>(reach[part].begin - block, 0, kKeyBlock) / 32 * 32,
                 (clamp<V>(reach[part].end - block, 0, kKeyBlock) + 31) / 32 * 32};
      if (keys.begin >= keys.end) continue;
      const bool unmasked = !tile.mask.by_element() && common[part].begin <= block + keys.begin &&
                            common[part].end >= block + keys.end;
      if (!unmasked) {
        if (!have_bits) {
          forward_words<V>(tile, s.group, {block, block + kKeyBlock}, bits);
          __builtin_memcpy(masks, bits, sizeof masks);
        }
        have_bits = true;
        const auto empty = [&](int64_t group) {
          uint64_t any = 0;
          for (int64_t j = group; j < group + 32; ++j) any |= bits[j];
          return (any >> (part * kLaneBlock) & 0xffffffffu) == 0;
        };
        while (keys.begin < keys.end && empty(keys.begin)) keys.begin += 32;
        while (keys.begin < keys.end && empty(keys.end - 32)) keys.end -= 32;
        if (keys.begin >= keys.end) continue;
      }
      P::multiply(scores + keys.begin * kLaneBlock, kLaneBlock, keys.end - keys.begin,
                  reinterpret_cast<const uint32_t*>(k + keys.begin * wide), wide / 2, qt + part * kLaneBlock,
                  kQueryTile, wide / 32, true);
      if (capped)
        machine::cap_scores(scores + keys.begin * kLaneBlock, (keys.end - keys.begin) * kLaneBlock, s.scale,
                            s.soft_cap);
      for (int v = 0; v < kLaneBlock; v += V::kWidth) {
        const int lane = part * kLaneBlock + v;
        const uint16_t* mask = masks + lane / V::kWidth;
        uint32_t* p = reinterpret_cast<uint32_t*>(words) + v;
        const V c = unmasked ? softmax_lanes<P, false>(scores + v, keys, mask, kappa, m + lane, l + lane, p)
                             : softmax_lanes<P, true>(scores + v, keys, mask, kappa, m + lane, l + lane, p);
        if (!started[part] || _mm512_cmp_ps_mask(c.v, _mm512_set1_ps(1.0f), _CMP_NEQ_UQ) == 0) continue;
        for (int64_t d = 0; d < dims; ++d) {
          float* o = ot + d * kQueryTile + lane;
          (V::load(o) * c).store(o);
        }
      }
      P::multiply(ot + part * kLaneBlock, kQueryTile, rows16,
                  reinterpret_cast<const uint32_t*>(vt) + keys.begin / 2, kKeyBlock / 2,
                  reinterpret_cast<const uint32_t*>(words) + keys.begin / 2 * kLaneBlock, kLaneBlock,
                  (keys.end - keys.begin) / 32, !started[part]);
      started[part] = true;
    }
  }
  P::leave();

  store_statistics<V>(a, tile, m, l);
  for (int part = 0; part < parts; ++part)
    for (int v = part * kLaneBlock; v < tile.lanes && v < (part + 1) * kLaneBlock; v += V::kWidth)
      for (int64_t d = 0; d < dims; d += 16) {
        const V r = V::load(l + v);
        __m512i block[16];
        for (int i = 0; i < 16; ++i) {
          const V x = started[part] ? V::load(ot + (d + i) * kQueryTile + v) : V::zero();
          block[i] = _mm512_castps_si512(((x + V::zero()) * r).v);
        }
        machine::transpose16(block);
        for (int i = 0; i < 16 && v + i < tile.lanes; ++i)
          store_lanes<P>(_mm512_castsi512_ps(block[i]), dims - d, a.out,
                         tile.offset(v + i, s.group, a.out_strides) + d, a.out_type);
      }
}

}  // namespace ostro::kernels
