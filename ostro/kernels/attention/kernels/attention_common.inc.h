// ExampleMask, load_row, store_row: masks as bits and rows as f32 tiles, for the forward and the backward
// kernels of attention.
#pragma once

#include <cstdint>

#include "ostro/kernels/attention/kernels/attention_kernels.h"
#include "ostro/machine/vector/tanh.inc.h"
#include "ostro/numerics/functions.h"

namespace ostro::kernels {

// f32 rows of scratch are padded to whole groups of 32, which also are whole vectors.
constexpr int64_t padded(int64_t head_dim) { return (head_dim + 31) / 32 * 32; }

// The mask of one example, in positions.
struct ExampleMask {
  bool causal;
  int64_t window, prefix, keys, origin;
  const int32_t* query_segments;  // by query row
  const int32_t* key_segments;
  const uint8_t* visible;  // [pos][keys of the array], 0 or 1
  int64_t visible_stride;

  // True when the mask is more than a range of positions, so that each key has to be tested.
  bool by_element() const { return key_segments != nullptr || visible != nullptr; }
};

template <class V>
inline ExampleMask example_mask(const AttentionShape& s, int64_t b) {
  const AttentionMask& m = s.mask;
  ExampleMask e{m.causal,
                m.window,
                m.prefix_length != nullptr ? m.prefix_length[b] : 0,
                s.key_pos,
                s.query_origin != nullptr ? s.query_origin[b] : 0,
                nullptr,
                nullptr,
                m.visible != nullptr ? m.visible + b * s.pos * s.key_pos : nullptr,
                s.key_pos};
  if (m.key_length != nullptr && m.key_length[b] < e.keys) e.keys = m.key_length[b];
  if (m.query_segments != nullptr) {
    e.query_segments = m.query_segments + b * m.query_segment_stride;
    e.key_segments = m.key_segments + b * m.key_segment_stride;
  }
  return e;
}

// kappa of N9.
template <class V>
inline V score_factor(const AttentionShape& s) {
  return V::set1(s.soft_cap > 0 ? numerics::kLog2e : numerics::attention_kappa(s.scale));
}

// The range of keys that positions [first, last] attend to, without regard to segments and `visible`. Both
// ends grow with the position.
template <class V>
inline Range reachable_keys(const ExampleMask& m, int64_t first, int64_t last) {
  Range r{0, m.keys};
  if (m.window > 0 && first - m.window + 1 > 0) r.begin = first - m.window + 1;
  if (m.causal) {
    const int64_t end = last + 1 > m.prefix ? last + 1 : m.prefix;
    if (end < r.end) r.end = end;
  }
  return r;
}

// The range of positions that attend to key j, without regard to segments and `visible`. It may be unbounded
// above or below.
template <class V>
inline Range reaching_positions(const ExampleMask& m, int64_t j) {
  constexpr int64_t kFar = int64_t{1} << 60;
  if (j >= m.keys) return {0, 0};
  return {m.causal && j >= m.prefix ? j : -kFar, m.window > 0 ? j + m.window : kFar};
}

template <class V>
inline int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Bits [begin, end) of a word, 0 <= begin, end <= 64.
template <class V>
inline uint64_t bit_range(int64_t begin, int64_t end) {
  if (begin >= end) return 0;
  const uint64_t below = end == 64 ? ~uint64_t{0} : (uint64_t{1} << end) - 1;
  return below & ~((uint64_t{1} << begin) - 1);
}

// Bit i: values[i] == x, for 64 values.
template <class V>
inline uint64_t equal_word(const int32_t* values, int32_t x) {
  uint64_t word = 0;
  for (int i = 0; i < 64; i += V::kWidth) word |= uint64_t{V::equal_bits(values + i, x)} << i;
  return word;
}

// Prefetches a row that will be read or written soon. Rows are far apart in memory, and the hardware
// prefetcher does not follow such strides.
template <class V, bool kWrite>
inline void fetch_row(const void* array, int64_t offset, int64_t elements, machine::FloatType type) {
  const int64_t size = type == machine::FloatType::kF32 ? 4 : 2;
  const char* p = static_cast<const char*>(array) + offset * size;
  for (int64_t i = 0; i < elements * size; i += 64) __builtin_prefetch(p + i, kWrite ? 1 : 0, 2);
}

// A row of head_dim elements as f32, exactly.
template <class V, bool kBf16>
inline void load_row(const void* source, int64_t offset, int64_t head_dim, float* out) {
  int64_t d = 0;
  if constexpr (kBf16) {
    const uint16_t* p = static_cast<const uint16_t*>(source) + offset;
    for (; d + V::kWidth <= head_dim; d += V::kWidth) V::load_bf16(p + d).store(out + d);
    uint16_t rest[V::kWidth] = {};
    if (d < head_dim) {
      for (int64_t i = d; i < head_dim; ++i) rest[i - d] = p[i];
      float wide[V::kWidth];
      V::load_bf16(rest).store(wide);
      for (int64_t i = d; i < head_dim; ++i) out[i] = wide[i - d];
    }
  } else {
    const float* p = static_cast<const float*>(source) + offset;
    for (; d + V::kWidth <= head_dim; d += V::kWidth) V::load(p + d).store(out + d);
    for (; d < head_dim; ++d) out[d] = p[d];
  }
}

// load_row, with +0 up to `length`.
template <class V, bool kBf16>
inline void load_padded_row(const void* source, int64_t offset, int64_t head_dim, int64_t length,
                            float* out) {
  load_row<V, kBf16>(source, offset, head_dim, out);
  for (int64_t d = head_dim; d < length; ++d) out[d] = 0;
}

// Writes a row of head_dim f32 values, to bf16 by one rounding.
template <class V>
inline void store_row(const float* row, int64_t head_dim, void* target, int64_t offset,
                      machine::FloatType type) {
  int64_t d = 0;
  if (type == machine::FloatType::kF32) {
    float* p = static_cast<float*>(target) + offset;
    for (; d + V::kWidth <= head_dim; d += V::kWidth) V::load(row + d).store(p + d);
    for (; d < head_dim; ++d) p[d] = row[d];
    return;
  }
  uint16_t* p = static_cast<uint16_t*>(target) + offset;
  for (; d + V::kWidth <= head_dim; d += V::kWidth) V::load(row + d).store_bf16(p + d);
  if (d == head_dim) return;
  float rest[V::kWidth] = {};
  uint16_t narrow[V::kWidth];
  for (int64_t i = d; i < head_dim; ++i) rest[i - d] = row[i];
  V::load(rest).store_bf16(narrow);
  for (int64_t i = d; i < head_dim; ++i) p[i] = narrow[i - d];
}

}  // namespace ostro::kernels
