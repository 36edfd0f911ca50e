// draw_row: the 16 bits that dither each element of a row (docs/spec/numerics.md, N20), on AVX-512: 16 blocks
// of threefry (N12) at a time, one in each lane.
#pragma once

#include <immintrin.h>

#include "ostro/products/kernels/quantize8_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int kDrawBlocks = 16;
// Room for the bits of `count` elements, of which the first may be in the middle of a block, and for the
// vector that ends beyond the last.
constexpr int64_t draw_room(int64_t count) {
  return (count + 3 + 4 * kDrawBlocks - 1) / (4 * kDrawBlocks) * (4 * kDrawBlocks) + 16;
}

template <int kRotation>
inline void threefry_round(__m512i& x0, __m512i& x1) {
  x0 = _mm512_add_epi32(x0, x1);
  x1 = _mm512_xor_si512(_mm512_rol_epi32(x1, kRotation), x0);
}

// x0, x1: the counters of 16 blocks, and then their words.
inline void threefry16(const Int8Draws& draws, __m512i& x0, __m512i& x1) {
  const uint32_t keys[3] = {draws.key0, draws.key1, draws.key0 ^ draws.key1 ^ 0x1bd11bdau};
  const auto word = [](uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); };
  x0 = _mm512_add_epi32(x0, word(keys[0]));
  x1 = _mm512_add_epi32(x1, word(keys[1]));
#pragma GCC unroll 5
  for (int i = 0; i < 5; ++i) {
    if (i % 2 == 0) {
      threefry_round<13>(x0, x1);
      threefry_round<15>(x0, x1);
      threefry_round<26>(x0, x1);
      threefry_round<6>(x0, x1);
    } else {
      threefry_round<17>(x0, x1);
      threefry_round<29>(x0, x1);
      threefry_round<16>(x0, x1);
      threefry_round<24>(x0, x1);
    }
    x0 = _mm512_add_epi32(x0, word(keys[(i + 1) % 3]));
    x1 = _mm512_add_epi32(x1, word(keys[(i + 2) % 3] + static_cast<uint32_t>(i) + 1));
  }
}

// Where the bits of `count` elements from `index` on begin in `room`, which has draw_room of them.
inline const uint16_t* draw_row(const Int8Draws& draws, uint64_t index, int64_t count, uint16_t* room) {
  // The block of each lane: so interleaving the words of the lower and of the upper lanes within each 128
  // bits gives those of the first eight blocks in order, and those of the other eight.
  alignas(64) static constexpr uint32_t kBlockOf[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  const __m512i block_of = _mm512_load_si512(kBlockOf);
  const auto skipped = static_cast<int64_t>(index % 4);
  for (int64_t at = 0; at < skipped + count; at += 4 * kDrawBlocks) {
    const uint64_t number = index / 4 + static_cast<uint64_t>(at / 4);
    const __m512i low = _mm512_set1_epi32(static_cast<int>(static_cast<uint32_t>(number)));
    const __m512i high = _mm512_set1_epi32(static_cast<int>(static_cast<uint32_t>(number >> 32)));
    __m512i x1 = _mm512_add_epi32(low, block_of);
    __m512i x0 = _mm512_mask_add_epi32(high, _mm512_cmplt_epu32_mask(x1, low), high, _mm512_set1_epi32(1));
    threefry16(draws, x0, x1);
    _mm512_storeu_si512(room + at, _mm512_unpacklo_epi32(x0, x1));
    _mm512_storeu_si512(room + at + 2 * kDrawBlocks, _mm512_unpackhi_epi32(x0, x1));
  }
  return room + skipped;
}

}  // namespace
}  // namespace ostro::kernels
