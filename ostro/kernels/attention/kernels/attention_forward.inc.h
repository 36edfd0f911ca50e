// attention_forward_item: attention's forward pass of one tile of 64 query rows. Lanes are queries: scores
// are stored as S^T [key][query] and the accumulator as O^T [head_dim][query]. So the maximum and the sum of
// each query are one serial chain over the keys, in one lane.
#pragma once

#include "ostro/kernels/attention/kernels/attention_tile.inc.h"
#include "ostro/machine/vector/exp2.inc.h"
#include "ostro/machine/vector/tile_product.inc.h"

namespace ostro::kernels {

// Transposes the queries, then goes over blocks of 128 keys, ascending. Per block: S^T = K Q^T; the new
// maximum m of each query, to which its sum l and its column of O^T are rescaled; P^T in the place of S^T;
// O^T += V^T P^T. Keys that no query of the tile attends to are cut off at both ends of a block; inside,
// masked scores become p = +0. At the end O is scaled by 1 / l, transposed and stored.
template <class V, bool kBf16>
void attention_forward_item(const AttentionForward& a, int64_t item, float* scratch) {
  constexpr int kW = V::kWidth;
  constexpr int kVectors = kQueryTile / kW;
  const AttentionShape& s = a.shape;
  const int64_t dims = s.head_dim, wide = padded(dims);
  const ForwardTile tile = forward_tile<V>(s, item);
  const int vectors = (tile.lanes + kW - 1) / kW, lanes = vectors * kW;

  float* qt = scratch;                     // [wide][64]
  float* p = qt + wide * kQueryTile;       // [128][64]
  float* ot = p + kKeyBlock * kQueryTile;  // [wide][64]
  float* line = ot + wide * kQueryTile;    // [vector width][wide]
  float* kw = line + kW * wide;            // [128][wide], bf16 only
  float* vw = kw + kKeyBlock * wide;       // the same

  const auto row_of = [&](int64_t lane, const QueryStrides& st) { return tile.offset(lane, s.group, st); };
  for (int i = 0; i < lanes; i += kW) {
    for (int n = 0; n < kW; ++n) {
      if (i + n < tile.lanes)
        load_padded_row<V, kBf16>(a.q, row_of(i + n, a.q_strides), dims, wide, line + n * wide);
      else
        for (int64_t d = 0; d < wide; ++d) line[n * wide + d] = 0;
    }
    for (int64_t d = 0; d < wide; d += kW) V::transpose(line + d, wide, qt + d * kQueryTile + i, kQueryTile);
  }
  for (int i = 0; i < tile.lanes; ++i) {
    fetch_row<V, true>(a.out, row_of(i, a.out_strides), dims, a.out_type);
    if (tile.first >= kQueryTile)  // the tile that is likely to be the next one
      fetch_row<V, false>(a.q, row_of(i - kQueryTile, a.q_strides), dims, s.type);
  }
  for (int64_t i = 0; i < wide * kQueryTile; ++i) ot[i] = 0;

  const bool capped = s.soft_cap > 0;
  const V kappa = score_factor<V>(s);
  float tops[kQueryTile], sums[kQueryTile];
  first_maximum<V>(s, tile, tops, sums);
  V m[kVectors], l[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    m[v] = V::load(tops + v * kW);
    l[v] = V::load(sums + v * kW);
  }

  Range common;
  const Range reach = lane_keys<V>(s, tile, 0, tile.lanes, &common);
  const uint64_t full = bit_range<V>(0, tile.lanes);
  uint64_t words[kKeyBlock];
  for (int64_t block = reach.begin / kKeyBlock * kKeyBlock; block < reach.end; block += kKeyBlock) {
    Range keys{block > reach.begin ? block : reach.begin,
               block + kKeyBlock < reach.end ? block + kKeyBlock : reach.end};
    if (keys.begin >= keys.end) continue;  // windows beyond the last key
    if (!tile.mask.by_element() && common.begin <= keys.begin && common.end >= keys.end)
      for (int64_t j = 0; j < keys.end - keys.begin; ++j) words[j] = full;
    else if (forward_words<V>(tile, s.group, keys, words) == 0)
      continue;
    const uint64_t* word = words;
    while (word[keys.end - keys.begin - 1] == 0) --keys.end;
    while (word[0] == 0) ++word, ++keys.begin;
    const int64_t count = keys.end - keys.begin;

    // S^T = K Q^T.
    const int64_t k_offset = tile.b * a.k_strides.batch + tile.h * a.k_strides.kv_head;
    const int64_t v_offset = tile.b * a.v_strides.batch + tile.h * a.v_strides.kv_head;
    machine::ProductA kp, vp;
    if constexpr (kBf16) {
      for (int64_t j = 0; j < count; ++j) {
        load_padded_row<V, true>(a.k, k_offset + (keys.begin + j) * a.k_strides.pos, dims, wide,
                                 kw + j * wide);
        load_row<V, true>(a.v, v_offset + (keys.begin + j) * a.v_strides.pos, dims, vw + j * wide);
      }
      kp = {kw, wide, 1};
      vp = {vw, 1, wide};
    } else {
      kp = {static_cast<const float*>(a.k) + k_offset + keys.begin * a.k_strides.pos, a.k_strides.pos, 1};
      vp = {static_cast<const float*>(a.v) + v_offset + keys.begin * a.v_strides.pos, 1, a.v_strides.pos};
    }
    machine::product<V, kBf16>(p, kQueryTile, count, lanes, kp, qt, kQueryTile, kBf16 ? wide : dims, 0, true);
    if (capped) {
      for (int64_t j = 0; j < count; ++j) machine::cap_scores(p + j * kQueryTile, lanes, s.scale, s.soft_cap);
    }

    for (int v = 0; v < vectors; ++v) {
      float* column = p + v * kW;
      const auto lanes_of = [&](int64_t j) { return V::mask(static_cast<uint32_t>(word[j] >> (v * kW))); };
      // The new maximum (its bits do not depend on the order), and all sums so far rescaled to it.
      const auto unmasked = [&](int64_t j) {
        const V x = V::load(column + j * kQueryTile);
        return word[j] == full ? x : V::select(lanes_of(j), x, m[v]);
      };
      V even = m[v], odd = m[v];
      for (int64_t j = 0; j + 1 < count; j += 2) {
        even = V::max(unmasked(j), even);
        odd = V::max(unmasked(j + 1), odd);
      }
      const V highest = V::max(V::max(unmasked(count - 1), even), odd);
      const V c = machine::exp2_below<V>(m[v], highest, kappa);
      V sum = l[v] * c;
      for (int64_t d = 0; d < dims; ++d) {
        float* o = ot + d * kQueryTile + v * kW;
        (V::load(o) * c).store(o);
      }
      // p and its sum, keys ascending.
      for (int64_t j = 0; j < count; ++j) {
        float* x = column + j * kQueryTile;
        V e = machine::exp2_below<V>(V::load(x), highest, kappa);
        if (word[j] != full) e = V::select(lanes_of(j), e, V::zero());
        sum = sum + e;
        if constexpr (kBf16) e = V::round_bf16(e);
        e.store(x);
      }
      m[v] = highest;
      l[v] = sum;
    }
    // O^T += V^T P^T.
    machine::product<V, kBf16>(ot, kQueryTile, dims, lanes, vp, p, kQueryTile, count,
                               static_cast<int>(keys.begin % 32), false);
  }

  for (int v = 0; v < kVectors; ++v) {
    m[v].store(tops + v * kW);
    l[v].store(sums + v * kW);
  }
  store_statistics<V>(a, tile, tops, sums);
  for (int i = 0; i < lanes; i += kW) {
    const V r = V::load(sums + i);
    for (int64_t d = 0; d < wide; ++d) {
      float* o = ot + d * kQueryTile + i;
      ((V::load(o) + V::zero()) * r).store(o);
    }
    for (int64_t d = 0; d < wide; d += kW) V::transpose(ot + d * kQueryTile + i, kQueryTile, line + d, wide);
    for (int n = 0; n < kW && i + n < tile.lanes; ++n)
      store_row<V>(line + n * wide, dims, a.out, row_of(i + n, a.out_strides), a.out_type);
  }
}

}  // namespace ostro::kernels
