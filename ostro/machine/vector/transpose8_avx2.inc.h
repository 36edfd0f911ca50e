// transpose8: transposes 8 x 8 words of 32 bits in registers, for packers and for products of few rows.
#pragma once

#include <immintrin.h>

namespace ostro::machine {
namespace {

// rows[i][j] becomes rows[j][i].
[[maybe_unused]] inline void transpose8(__m256i (&rows)[8]) {
  __m256i t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 2; ++i) {
    rows[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    rows[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    const __m256i low = _mm256_permute2x128_si256(rows[i], rows[4 + i], 0x20);
    rows[4 + i] = _mm256_permute2x128_si256(rows[i], rows[4 + i], 0x31);
    rows[i] = low;
  }
}

}  // namespace
}  // namespace ostro::machine
