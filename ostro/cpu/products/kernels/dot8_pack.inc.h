// pack8_groups: packs int8 rows into panels in which each row's next four numbers are neighbours, four
// numbers of row 0, of row 1, and so on. pack8_words: as numbers of 16 bits, two of a row together. row_sums:
// the sums of rows. Plain loops, included by the kernel files.
#pragma once

#include <cstring>

#include "ostro/cpu/products/kernels/dot8_kernel.h"

namespace ostro::cpu {
namespace {

// Four numbers of one row, with zeros after the last.
inline uint32_t four_at(const int8_t* row, int64_t k, int64_t count) {
  uint32_t four = 0;
  if (k + 4 <= count)
    std::memcpy(&four, row + k, 4);
  else if (k < count)
    std::memcpy(&four, row + k, static_cast<size_t>(count - k));
  return four;
}

// x ^ 0x80 is x + 128 modulo 256.
template <int Width, uint32_t Flip>
[[maybe_unused]] void pack8_groups(const Int8PanelSource& s, void* out) {
  auto* to = static_cast<uint32_t*>(out);
  for (int64_t k = 0; k < s.steps; k += 4, to += Width) {
    int row = 0;
    for (; row < s.rows; ++row) to[row] = four_at(s.q + row * s.stride, k, s.count) ^ Flip;
    for (; row < Width; ++row) to[row] = Flip;
  }
}

// The sum of each row, times `factor`.
[[maybe_unused]] void row_sums(const Int8PanelSource& s, int width, int32_t factor, int32_t* sums) {
  for (int row = 0; row < width; ++row) {
    int32_t sum = 0;
    if (row < s.rows && factor != 0)
      for (int64_t k = 0; k < s.count; ++k) sum += s.q[row * s.stride + k];
    sums[row] = factor * sum;
  }
}

template <int Width>
[[maybe_unused]] void pack8_words(const Int8PanelSource& s, void* out) {
  auto* to = static_cast<int16_t*>(out);
  for (int64_t k = 0; k < s.steps; k += 2, to += 2 * Width)
    for (int row = 0; row < Width; ++row)
      for (int i = 0; i < 2; ++i)
        to[2 * row + i] = row < s.rows && k + i < s.count ? s.q[row * s.stride + k + i] : int16_t{0};
}

}  // namespace
}  // namespace ostro::cpu
