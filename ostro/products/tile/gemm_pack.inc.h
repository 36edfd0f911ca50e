// pack_f32_panel, pack_groups: packers in plain C++, for every width. Included by the kernel files, each of
// which gets its own copy.
//
// Layouts of one panel of width W:
//   f32:      [k][W]
//   expanded: [k][W] f32 values of bf16 elements (A of the kernels that emulate bf16)
//   pairs:    [k / 2][W] words, element 2j in the low half, 2j + 1 in the high half
//   chains:   per 32 k: 8 rows of W words (low = 4q + 2, high = 4q), then 8 rows (low = 4q + 3,
//             high = 4q + 1), so that VDPBF16PS, which takes the high half first, sees the even and the odd
//             chain of N7
//   tiles:    per 32 k and 16 rows: [16][32] bf16, an AMX tile (A of AMX)
#pragma once

#include <cstring>

#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int kGroup = 32;  // N7: bf16 products are summed in groups of 32

template <int W>
[[maybe_unused]] void pack_f32_plain(const PanelSource& s, void* out_bytes, int64_t begin, int64_t end) {
  const float* base = static_cast<const float*>(s.base);
  float* out = static_cast<float*>(out_bytes);
  for (int64_t k = begin; k < end; ++k) {
    const float* row = base + s.k_offsets[k];
    float* to = out + k * W;
    if (s.w_contiguous) {
      const float* from = row + s.w_offsets[0];
      for (int w = 0; w < s.width; ++w) to[w] = from[w];
    } else {
      for (int w = 0; w < s.width; ++w) to[w] = row[s.w_offsets[w]];
    }
    for (int w = s.width; w < W; ++w) to[w] = 0.0f;
  }
}

// The 32 x W elements of one group, zero where the panel or the segment ends.
template <int W>
void read_group(const PanelSource& s, int64_t k0, uint16_t (&group)[kGroup][W]) {
  const uint16_t* base = static_cast<const uint16_t*>(s.base);
  const int64_t count = s.count - k0 < kGroup ? s.count - k0 : kGroup;
  if (count < kGroup || s.width < W) std::memset(group, 0, sizeof group);
  if (s.w_contiguous) {
    for (int64_t k = 0; k < count; ++k)
      std::memcpy(group[k], base + s.k_offsets[k0 + k] + s.w_offsets[0], sizeof(uint16_t) * s.width);
  } else {
    for (int w = 0; w < s.width; ++w) {
      const uint16_t* from = base + s.w_offsets[w];
      for (int64_t k = 0; k < count; ++k) group[k][w] = from[s.k_offsets[k0 + k]];
    }
  }
}

template <int W>
[[maybe_unused]] void pack_group_expanded(const PanelSource& s, int64_t k0, uint32_t* out) {
  uint16_t group[kGroup][W];
  read_group<W>(s, k0, group);
  for (int k = 0; k < kGroup; ++k)
    for (int w = 0; w < W; ++w) out[k * W + w] = static_cast<uint32_t>(group[k][w]) << 16;
}

template <int W>
[[maybe_unused]] void pack_group_pairs(const PanelSource& s, int64_t k0, uint32_t* out) {
  uint16_t group[kGroup][W];
  read_group<W>(s, k0, group);
  for (int j = 0; j < kGroup / 2; ++j)
    for (int w = 0; w < W; ++w)
      out[j * W + w] = static_cast<uint32_t>(group[2 * j + 1][w]) << 16 | group[2 * j][w];
}

template <int W>
[[maybe_unused]] void pack_group_chains(const PanelSource& s, int64_t k0, uint32_t* out) {
  uint16_t group[kGroup][W];
  read_group<W>(s, k0, group);
  for (int odd = 0; odd < 2; ++odd)
    for (int q = 0; q < 8; ++q)
      for (int w = 0; w < W; ++w)
        out[(odd * 8 + q) * W + w] =
            static_cast<uint32_t>(group[4 * q + odd][w]) << 16 | group[4 * q + 2 + odd][w];
}

// W = 16 rows a tile; a panel of two tiles holds the first, then the second, per group.
template <int W>
[[maybe_unused]] void pack_group_tiles(const PanelSource& s, int64_t k0, uint32_t* out) {
  uint16_t group[kGroup][W];
  read_group<W>(s, k0, group);
  for (int w = 0; w < W; ++w)
    for (int j = 0; j < kGroup / 2; ++j)
      out[w * (kGroup / 2) + j] = static_cast<uint32_t>(group[2 * j + 1][w]) << 16 | group[2 * j][w];
}

template <int W>
[[maybe_unused]] void pack_f32_panel(const PanelSource& s, void* out) {
  pack_f32_plain<W>(s, out, 0, s.count);
}

// A whole panel, group by group, each `Words` words long.
template <int Words, void (*Group)(const PanelSource&, int64_t, uint32_t*)>
[[maybe_unused]] void pack_groups(const PanelSource& s, void* out_bytes) {
  uint32_t* out = static_cast<uint32_t*>(out_bytes);
  for (int64_t k0 = 0; k0 < s.count; k0 += kGroup, out += Words) Group(s, k0, out);
}

[[maybe_unused]] void round_row_plain(const float* in, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t x;
    std::memcpy(&x, in + i, sizeof x);
    const uint32_t magnitude = x & 0x7fffffffu;
    const uint32_t rounded = (x + 0x7fffu + (x >> 16 & 1)) >> 16;
    const uint32_t nan = x >> 16 | 0x40u;
    const uint32_t zero = x >> 31 << 15;
    out[i] = static_cast<uint16_t>(magnitude > 0x7f800000u ? nan : magnitude < 0x00800000u ? zero : rounded);
  }
}

}  // namespace
}  // namespace ostro::kernels
