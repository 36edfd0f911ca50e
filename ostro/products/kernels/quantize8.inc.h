// quantize8_row, quantize8_columns: docs/spec/numerics.md, N20, in loops that compilers turn into vectors of
// any width. Included by the kernel files. The environment of N0 makes denormals zero.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "ostro/ir/program/int8_limits.h"
#include "ostro/products/kernels/quantize8_kernel.h"
#include "ostro/products/kernels/quantize8_scale.inc.h"

namespace ostro::kernels {
namespace {

// Blocks of threefry that are made at a time, in a loop of a fixed length: it has no remainder.
constexpr int kDrawBlocks = 16;
// Room for the bits of `count` elements, of which the first may be in the middle of a block.
constexpr int64_t draw_room(int64_t count) {
  return (count + 3 + 4 * kDrawBlocks - 1) / (4 * kDrawBlocks) * (4 * kDrawBlocks);
}

// The 16 bits of each of `count` elements from `index` on: where they begin in `room`, which has draw_room of
// them. In memory the two words of a block are the bits of its four elements, in order.
inline const uint16_t* draw_row(const Int8Draws& draws, uint64_t index, int64_t count,
                                uint16_t* __restrict room) {
  const uint32_t k0 = draws.key0, k1 = draws.key1, k2 = k0 ^ k1 ^ 0x1bd11bdau;
  const auto skipped = static_cast<int64_t>(index % 4);
  for (int64_t at = 0; at < skipped + count; at += 4 * kDrawBlocks) {
    const uint64_t number = index / 4 + static_cast<uint64_t>(at / 4);
    const auto high = static_cast<uint32_t>(number >> 32), low = static_cast<uint32_t>(number);
    uint32_t words[2 * kDrawBlocks];
    for (int i = 0; i < kDrawBlocks; ++i) {
      uint32_t x1 = low + static_cast<uint32_t>(i);
      uint32_t x0 = high + (x1 < low ? 1 : 0) + k0;
      x1 += k1;
      const auto round = [&](int rotation) {
        x0 += x1;
        x1 = x1 << rotation | x1 >> (32 - rotation);
        x1 ^= x0;
      };
      round(13), round(15), round(26), round(6), x0 += k1, x1 += k2 + 1;
      round(17), round(29), round(16), round(24), x0 += k2, x1 += k0 + 2;
      round(13), round(15), round(26), round(6), x0 += k0, x1 += k1 + 3;
      round(17), round(29), round(16), round(24), x0 += k1, x1 += k2 + 4;
      round(13), round(15), round(26), round(6), x0 += k2, x1 += k0 + 5;
      words[2 * i] = x0, words[2 * i + 1] = x1;
    }
    std::memcpy(room + at, words, sizeof words);
  }
  return room + skipped;
}

// The elements as f32: a pointer to x itself, or to `room`.
inline const float* widened(const void* x, bool bf16, int64_t count, float* __restrict room) {
  if (!bf16) return static_cast<const float*>(x);
  const auto* from = static_cast<const uint16_t*>(x);
  for (int64_t i = 0; i < count; ++i) room[i] = float_of(static_cast<uint32_t>(from[i]) << 16);
  return room;
}

// The numbers, in the lowest 8 bits of words. `keep` is 0 where they are to be zero whatever x is. Adding
// 1.5 * 2^23 rounds to nearest, ties to even, and leaves the number in the lowest bits. h is
// the element's 16 bits.
inline uint32_t nearest(float x, float inverse, uint32_t keep) {
  return bits_of(x * inverse + 0x1.8p23f) & keep;
}
inline uint32_t dithered(float x, float inverse, uint16_t h, uint32_t keep) {
  const float u = static_cast<float>(h * 2 + 1) * 0x1p-17f;
  return bits_of(std::floor(x * inverse + u) + 0x1.8p23f) & keep;
}

// The loops of a row. Their pointers are known not to overlap, without which compilers make no vectors.
inline uint32_t largest_of(const float* x, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t magnitude = bits_of(x[i]) & kMagnitude;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}
inline void nearest_row(const float* __restrict x, float inverse, int64_t count, int8_t* __restrict q) {
  for (int64_t i = 0; i < count; ++i) q[i] = static_cast<int8_t>(nearest(x[i], inverse, 0xff));
}
inline void dithered_row(const float* __restrict x, float inverse, const uint16_t* __restrict h,
                         int64_t count, int8_t* __restrict q) {
  for (int64_t i = 0; i < count; ++i) q[i] = static_cast<int8_t>(dithered(x[i], inverse, h[i], 0xff));
}

[[maybe_unused]] float quantize8_row(const Int8RowBlock& b) {
  alignas(64) float room[ir::kMaxInt8Block];
  alignas(64) uint16_t draws[draw_room(ir::kMaxInt8Block)];
  const float* x = widened(b.x, b.bf16, b.count, room);
  const BlockScale s = scale_of_block(largest_of(x, b.count));
  if (s.inverse == 0.0f) {
    std::memset(b.q, 0, static_cast<size_t>(b.count));
  } else if (b.draws == nullptr) {
    nearest_row(x, s.inverse, b.count, b.q);
  } else {
    dithered_row(x, s.inverse, draw_row(*b.draws, b.index, b.count, draws), b.count, b.q);
  }
  return s.scale;
}

// The loops over the columns of a row.
inline void largest_by_column(const float* __restrict x, int columns, uint32_t* __restrict largest) {
  for (int i = 0; i < columns; ++i) {
    const uint32_t magnitude = bits_of(x[i]) & kMagnitude;
    largest[i] = magnitude > largest[i] ? magnitude : largest[i];
  }
}
inline void add_nearest(const float* __restrict x, const float* __restrict inverse,
                        const uint32_t* __restrict keep, int columns, int shift, uint32_t* __restrict words) {
  for (int i = 0; i < columns; ++i) words[i] |= nearest(x[i], inverse[i], keep[i]) << shift;
}
inline void add_dithered(const float* __restrict x, const float* __restrict inverse,
                         const uint32_t* __restrict keep, const uint16_t* __restrict h, int columns,
                         int shift, uint32_t* __restrict words) {
  for (int i = 0; i < columns; ++i) words[i] |= dithered(x[i], inverse[i], h[i], keep[i]) << shift;
}

// Four rows at a time make words of four numbers of each column; 16 such words of a column are 64 numbers in
// order, which are written together.
template <typename Columns>
inline void columns_of(const Int8ColumnBlock& b, Columns columns) {
  constexpr int kAtOnce = 64, kRowsAhead = 16;
  alignas(64) float room[kInt8Columns], inverse[kInt8Columns];
  alignas(64) uint16_t draws[draw_room(kInt8Columns)];
  alignas(64) uint32_t largest[kInt8Columns] = {}, keep[kInt8Columns];
  alignas(64) uint32_t words[kAtOnce / 4][kInt8Columns];
  const int64_t rows = b.rows, element = b.bf16 ? 2 : 4;
  const auto row_of = [&](int64_t row) {
    return widened(static_cast<const char*>(b.x) + b.row_at[row] * element, b.bf16, columns, room);
  };
  for (int64_t row = 0; row < rows; ++row) {
    // Rows are far apart, which no hardware prefetcher follows.
    const char* ahead =
        static_cast<const char*>(b.x) + b.row_at[row + kRowsAhead < rows ? row + kRowsAhead : row] * element;
    for (int64_t at = 0; at < columns * element; at += 64) __builtin_prefetch(ahead + at, 0, 3);
    largest_by_column(row_of(row), columns, largest);
  }
  for (int i = 0; i < columns; ++i) {
    const BlockScale s = scale_of_block(largest[i]);
    inverse[i] = s.inverse;
    keep[i] = s.inverse == 0.0f ? 0 : 0xff;
    b.scales[i * b.scale_stride] = s.scale;
  }
  for (int64_t first = 0; first < rows; first += kAtOnce) {
    const int64_t count = rows - first < kAtOnce ? rows - first : kAtOnce;
    for (int i = 0; i < columns; ++i) __builtin_prefetch(b.q + i * b.q_stride + first, 1, 3);
    for (int64_t row = 0; row < count; ++row) {
      const float* x = row_of(first + row);
      uint32_t* to = words[row / 4];
      const int shift = static_cast<int>(row % 4) * 8;
      if (shift == 0) std::memset(to, 0, sizeof words[0]);
      if (b.draws == nullptr) {
        add_nearest(x, inverse, keep, columns, shift, to);
      } else {
        const uint16_t* h = draw_row(*b.draws, b.index[first + row], columns, draws);
        add_dithered(x, inverse, keep, h, columns, shift, to);
      }
    }
    for (int i = 0; i < columns; ++i) {
      alignas(64) uint32_t column[kAtOnce / 4];
      for (int j = 0; j < kAtOnce / 4; ++j) column[j] = words[j][i];
      int8_t* to = b.q + i * b.q_stride + first;
      if (count == kAtOnce)
        std::memcpy(to, column, kAtOnce);
      else
        std::memcpy(to, column, static_cast<size_t>(count));
    }
  }
}

// Loops of a known length have no remainder.
[[maybe_unused]] void quantize8_columns(const Int8ColumnBlock& b) {
  if (b.columns == kInt8Columns)
    columns_of(b, std::integral_constant<int, kInt8Columns>());
  else
    columns_of(b, b.columns);
}

}  // namespace
}  // namespace ostro::kernels
