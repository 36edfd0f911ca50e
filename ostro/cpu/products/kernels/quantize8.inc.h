// quantize8_row, quantize8_columns: docs/spec/numerics.md, N20, in loops that compilers turn into vectors of
// any width. Included by the kernel files. The environment of N0 makes denormals zero.
#pragma once

#include <cmath>
#include <cstring>

#include "ostro/cpu/products/int8_blocks.h"
#include "ostro/cpu/products/kernels/quantize8_kernel.h"

namespace ostro::cpu {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u, kSmallest = 0x00800000u;

inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// The power of two that the block is divided by, and its inverse: by the largest magnitude's bits. Where all
// numbers are to be zero, the inverse is.
struct BlockScale {
  float scale, inverse;
};
inline BlockScale scale_of_block(uint32_t largest) {
  if (largest >= kInfinity) return {float_of(0x7fc00000u), 0.0f};
  if (largest < kSmallest) return {0.0f, 0.0f};
  const int field = static_cast<int>(largest >> 23);
  int e = field - 127 > -120 ? field - 127 : -120;
  if (float_of(largest) > 127.0f * float_of(static_cast<uint32_t>(e - 6 + 127) << 23)) ++e;
  return {float_of(static_cast<uint32_t>(e - 6 + 127) << 23),
          float_of(static_cast<uint32_t>(6 - e + 127) << 23)};
}

// The draws of N12 at `count` indices from `index` on, as u = (2k + 1) 2^-17 with k the upper 16 bits.
inline void draw_row(const Int8Draws& draws, uint64_t index, int64_t count, float* u) {
  const uint32_t k0 = draws.key0, k1 = draws.key1, k2 = k0 ^ k1 ^ 0x1bd11bdau;
  while (count > 0) {
    const auto high = static_cast<uint32_t>(index >> 32), low = static_cast<uint32_t>(index);
    const int64_t left = (int64_t{1} << 32) - low, together = count < left ? count : left;
    for (int64_t i = 0; i < together; ++i) {
      uint32_t x0 = high + k0, x1 = low + static_cast<uint32_t>(i) + k1;
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
      u[i] = static_cast<float>(static_cast<int32_t>((x0 ^ x1) >> 16 << 1 | 1)) * 0x1p-17f;
    }
    index += static_cast<uint64_t>(together), count -= together, u += together;
  }
}

// The elements as f32: a pointer to x itself, or to `room`.
inline const float* widened(const void* x, bool bf16, int64_t count, float* room) {
  if (!bf16) return static_cast<const float*>(x);
  const auto* from = static_cast<const uint16_t*>(x);
  for (int64_t i = 0; i < count; ++i) room[i] = float_of(static_cast<uint32_t>(from[i]) << 16);
  return room;
}

// The numbers, in the lowest 8 bits of words. `keep` is 0 where they are to be zero whatever x is. Adding
// 1.5 * 2^23 rounds to nearest, ties to even, and leaves the number in the lowest bits.
inline uint32_t nearest(float x, float inverse, uint32_t keep) {
  return bits_of(x * inverse + 0x1.8p23f) & keep;
}
inline uint32_t dithered(float x, float inverse, float u, uint32_t keep) {
  return bits_of(std::floor(x * inverse + u) + 0x1.8p23f) & keep;
}

[[maybe_unused]] float quantize8_row(const Int8RowBlock& b) {
  alignas(64) float room[kInt8LargestBlock];
  alignas(64) float u[kInt8LargestBlock];
  const float* x = widened(b.x, b.bf16, b.count, room);
  uint32_t largest = 0;
  for (int64_t i = 0; i < b.count; ++i) {
    const uint32_t magnitude = bits_of(x[i]) & kMagnitude;
    largest = magnitude > largest ? magnitude : largest;
  }
  const BlockScale s = scale_of_block(largest);
  if (s.inverse == 0.0f) {
    std::memset(b.q, 0, static_cast<size_t>(b.count));
  } else if (b.draws == nullptr) {
    for (int64_t i = 0; i < b.count; ++i) b.q[i] = static_cast<int8_t>(nearest(x[i], s.inverse, 0xff));
  } else {
    draw_row(*b.draws, b.index, b.count, u);
    for (int64_t i = 0; i < b.count; ++i) b.q[i] = static_cast<int8_t>(dithered(x[i], s.inverse, u[i], 0xff));
  }
  return s.scale;
}

// Four rows at a time make words of four numbers of each column; 16 such words of a column are 64 numbers in
// order, which are written together.
[[maybe_unused]] void quantize8_columns(const Int8ColumnBlock& b) {
  constexpr int kAtOnce = 64;
  alignas(64) float room[kInt8Columns], inverse[kInt8Columns], u[kInt8Columns];
  alignas(64) uint32_t largest[kInt8Columns] = {}, keep[kInt8Columns];
  alignas(64) uint32_t words[kAtOnce / 4][kInt8Columns];
  const int columns = b.columns;
  const auto row_of = [&](int64_t row) {
    const int64_t at = row * b.stride * (b.bf16 ? 2 : 4);
    return widened(static_cast<const char*>(b.x) + at, b.bf16, columns, room);
  };
  for (int64_t row = 0; row < b.rows; ++row) {
    const float* x = row_of(row);
    for (int i = 0; i < columns; ++i) {
      const uint32_t magnitude = bits_of(x[i]) & kMagnitude;
      largest[i] = magnitude > largest[i] ? magnitude : largest[i];
    }
  }
  for (int i = 0; i < columns; ++i) {
    const BlockScale s = scale_of_block(largest[i]);
    inverse[i] = s.inverse;
    keep[i] = s.inverse == 0.0f ? 0 : 0xff;
    b.scales[i * b.scale_stride] = s.scale;
  }
  for (int64_t first = 0; first < b.rows; first += kAtOnce) {
    const int64_t count = b.rows - first < kAtOnce ? b.rows - first : kAtOnce;
    for (int64_t row = 0; row < count; ++row) {
      const float* x = row_of(first + row);
      uint32_t* to = words[row / 4];
      const int shift = static_cast<int>(row % 4) * 8;
      if (shift == 0) std::memset(to, 0, sizeof words[0]);
      if (b.draws == nullptr) {
        for (int i = 0; i < columns; ++i) to[i] |= nearest(x[i], inverse[i], keep[i]) << shift;
      } else {
        draw_row(*b.draws, b.index[first + row], columns, u);
        for (int i = 0; i < columns; ++i) to[i] |= dithered(x[i], inverse[i], u[i], keep[i]) << shift;
      }
    }
    for (int i = 0; i < columns; ++i) {
      uint32_t column[kAtOnce / 4];
      for (int j = 0; j < kAtOnce / 4; ++j) column[j] = words[j][i];
      int8_t* to = b.q + i * b.q_stride + first;
      if (count == kAtOnce)
        std::memcpy(to, column, kAtOnce);
      else
        std::memcpy(to, column, static_cast<size_t>(count));
    }
  }
}

}  // namespace
}  // namespace ostro::cpu
