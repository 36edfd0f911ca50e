// ForwardTile: the query rows of one forward item, and the keys that they attend to.
#pragma once

#include "ostro/kernels/attention/kernels/attention_common.inc.h"

namespace ostro::kernels {

// Rows of one example and kv head, flattened pos * group: neighbours share keys also in cached decode.
struct ForwardTile {
  int64_t b, h, first;  // example, kv head, first row
  int lanes;            // rows in use
  ExampleMask mask;
  int32_t segments[kQueryTile];
  bool one_segment;

  // Elements from the start of an array to row `lane`.
  int64_t offset(int64_t lane, int64_t group, const QueryStrides& st) const {
    const int64_t row = first + lane;
    return b * st.batch + row / group * st.pos + h * st.kv_head + row % group * st.group;
  }
};

template <class V>
inline ForwardTile forward_tile(const AttentionShape& s, int64_t item) {
  const int64_t rows = s.pos * s.group, tiles = (rows + kQueryTile - 1) / kQueryTile;
  ForwardTile t;
  // Later tiles see more keys under a causal mask; starting with them balances the threads.
  t.first = (tiles - 1 - item % tiles) * kQueryTile;
  t.h = item / tiles % s.kv_heads;
  t.b = item / tiles / s.kv_heads;
  t.lanes = static_cast<int>(rows - t.first < kQueryTile ? rows - t.first : kQueryTile);
  t.mask = example_mask<V>(s, t.b);
  t.one_segment = true;
  for (int i = 0; i < kQueryTile; ++i) {
    const int64_t row = t.first + (i < t.lanes ? i : t.lanes - 1);
    t.segments[i] = t.mask.query_segments != nullptr ? t.mask.query_segments[row / s.group] : 0;
    t.one_segment = t.one_segment && t.segments[i] == t.segments[0];
  }
  return t;
}

// The values with which the running maximum and the sum of lane i start.
template <class V>
inline void first_maximum(const AttentionShape& s, const ForwardTile& t, float* m, float* l) {
  for (int i = 0; i < kQueryTile; ++i) {
    m[i] = -1e30f;
    l[i] = 0;
    if (s.sink == nullptr) continue;
    const float bias = s.sink[t.h * s.group + (t.first + i) % s.group];
    m[i] = s.soft_cap > 0 ? bias : bias / s.scale;
    l[i] = 1;
  }
}

// The range of keys that any of the lanes [begin, end) attends to, without regard to segments, and the range
// that all of them attend to.
template <class V>
inline Range lane_keys(const AttentionShape& s, const ForwardTile& t, int begin, int end, Range* common) {
  const int64_t low = t.mask.origin + (t.first + begin) / s.group;
  const int64_t high = t.mask.origin + (t.first + end - 1) / s.group;
  *common = {reachable_keys<V>(t.mask, high, high).begin, reachable_keys<V>(t.mask, low, low).end};
  return reachable_keys<V>(t.mask, low, high);
}

// Stores m and r of the tile's rows; l becomes r.
template <class V>
inline void store_statistics(const AttentionForward& a, const ForwardTile& t, const float* m, float* l) {
  const AttentionShape& s = a.shape;
  for (int i = 0; i < t.lanes; ++i) {
    l[i] = l[i] == 0 ? 0.0f : 1.0f / l[i];  // 0: a row without keys
    const int64_t row = t.first + i;
    const int64_t saved = ((t.b * s.pos + row / s.group) * s.kv_heads + t.h) * s.group + row % s.group;
    a.m[saved] = m[i] + 0.0f;
    a.r[saved] = l[i];
  }
}

// Fills words[j - begin] with the lanes that attend to key j. Returns their union.
template <class V>
inline uint64_t forward_words(const ForwardTile& tile, int64_t group, Range keys, uint64_t* words) {
  const ExampleMask& m = tile.mask;
  uint64_t any = 0;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    const Range p = reaching_positions<V>(m, j);
    // A position p of this example is the rows [(p - origin) * group, + group).
    const auto lane = [&](int64_t position) {
      const int64_t row = clamp<V>(position - m.origin, -1, tile.first + kQueryTile) * group - tile.first;
      return clamp<V>(row, 0, tile.lanes);
    };
    uint64_t word = bit_range<V>(lane(p.begin), lane(p.end));
    if (m.key_segments != nullptr && word != 0) {
      const int32_t segment = m.key_segments[j];
      if (tile.one_segment)
        word = segment == tile.segments[0] ? word : 0;
      else
        word &= equal_word<V>(tile.segments, segment);
    }
    words[j - keys.begin] = word;
  }
  const int64_t held = m.keys < keys.end ? m.keys : keys.end;  // beyond, words are zero already
  if (m.visible != nullptr) {
    for (int i = 0; i < tile.lanes; ++i) {
      const uint8_t* row = m.visible + (tile.first + i) / group * m.visible_stride;
      for (int64_t j = keys.begin; j < held; ++j) words[j - keys.begin] &= ~(uint64_t{row[j] == 0} << i);
    }
  }
  for (int64_t j = 0; j < keys.end - keys.begin; ++j) any |= words[j];
  return any;
}

}  // namespace ostro::kernels
