// pack8_groups: packs int8 rows into panels in which each row's next four numbers are neighbours, four
// numbers of row 0, of row 1, and so on. pack8_words: as numbers of 16 bits, two of a row together. row_sums:
// the sums of rows. Plain loops, included by the kernel files.
#pragma once

#include <cstring>

#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
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

// x ^ 0x80 is x + 128 modulo 256. A row's numbers are read 64 at a time: rows whose stride is a power of two
// meet in the same sets of L1, so a line that was read in part would be gone before the next part.
template <int Width, uint32_t Flip>
[[maybe_unused]] void pack8_groups(const Int8PanelSource& s, void* out) {
  constexpr int64_t kLine = 64;
  auto* to = static_cast<uint32_t*>(out);
  for (int64_t k = 0; k < s.steps; k += kLine, to += kLine / 4 * Width) {
    const int64_t groups = s.steps - k < kLine ? (s.steps - k) / 4 : kLine / 4;
    for (int row = 0; row < s.rows; ++row) {
      const int8_t* from = s.q + row * s.stride;
      if (k + kLine <= s.count) {
        uint32_t line[kLine / 4];
        std::memcpy(line, from + k, kLine);
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLine / 4; ++i) to[i * Width + row] = line[i] ^ Flip;
      } else {
        for (int64_t i = 0; i < groups; ++i) to[i * Width + row] = four_at(from, k + 4 * i, s.count) ^ Flip;
      }
    }
    for (int64_t i = 0; i < groups; ++i)
      for (int row = s.rows; row < Width; ++row) to[i * Width + row] = Flip;
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
}  // namespace ostro::kernels
