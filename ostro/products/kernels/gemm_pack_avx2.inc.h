// pack_f32_avx2, pack_group_pairs_avx2, ...: packers for AVX2, in the layouts of gemm_pack.inc.h, for panels
// of 6 and of 16. There are fast ones for contiguous rows (one panel, or for f32 all panels together) and for
// contiguous k (8 x 8 transposes of words). The plain one serves all other cases.
#pragma once

#include <immintrin.h>

#include "ostro/machine/vector/transpose8_avx2.inc.h"
#include "ostro/products/tile/gemm_pack.inc.h"

namespace ostro::kernels {
namespace {

// Stores the first W words of x (W is 6 or 8). Only the last row of a call must not write beyond its end;
// behind every other row the next row is written later anyway.
template <int W>
inline void store_words(void* to, __m256i x, bool last) {
  if (W == 8 || !last) return _mm256_storeu_si256(static_cast<__m256i*>(to), x);
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_castsi256_si128(x));
  _mm_storel_epi64(static_cast<__m128i*>(to) + 1, _mm256_extracti128_si256(x, 1));
}

// Eight words of each of 8 panel rows from w on, zero beyond the width; `element` is their size in the
// source.
inline void load_rows8(const PanelSource& s, int64_t k_offset, int w, int element, __m256i (&rows)[8]) {
  const char* base = static_cast<const char*>(s.base);
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r)
    rows[r] = w + r < s.width ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(
                                    base + (s.w_offsets[w + r] + k_offset) * element))
                              : _mm256_setzero_si256();
}

// Six words of each of four rows, one row behind the other: three whole stores instead of eight parts.
inline void join_rows6(const float* a, const float* b, const float* c, const float* d, float* out) {
  const auto join = [](__m128 low, __m128 high) { return _mm256_set_m128(high, low); };
  const auto pairs = [](const float* low, const float* high) {
    const __m128 x = _mm_loadl_pi(_mm_setzero_ps(), reinterpret_cast<const __m64*>(low));
    return _mm_loadh_pi(x, reinterpret_cast<const __m64*>(high));
  };
  _mm256_storeu_ps(out, join(_mm_loadu_ps(a), pairs(a + 4, b)));
  _mm256_storeu_ps(out + 8, join(_mm_loadu_ps(b + 2), _mm_loadu_ps(c)));
  _mm256_storeu_ps(out + 16, join(pairs(c + 4, d), _mm_loadu_ps(d + 2)));
}

template <int W>
inline void copy_row(const float* from, float* to) {
  if constexpr (W == 6) {
    _mm_storeu_ps(to, _mm_loadu_ps(from));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 4),
                     _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 4)));
  } else {
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
    _mm256_storeu_ps(to + 8, _mm256_loadu_ps(from + 8));
  }
}

template <int W>
[[maybe_unused]] void pack_f32_avx2(const PanelSource& s, void* out_bytes) {
  static_assert(W == 6 || W == 16);
  float* out = static_cast<float*>(out_bytes);
  if (s.w_contiguous) {
    if (s.width < W) return pack_f32_plain<W>(s, out, 0, s.count);
    const float* rows = static_cast<const float*>(s.base) + s.w_offsets[0];
    const int64_t* k_offsets = s.k_offsets;
    int64_t k = 0;
    if constexpr (W == 6)
      for (; k + 4 <= s.count; k += 4, out += 4 * W)
        join_rows6(rows + k_offsets[k], rows + k_offsets[k + 1], rows + k_offsets[k + 2],
                   rows + k_offsets[k + 3], out);
    for (const int64_t count = s.count; k < count; ++k, out += W) copy_row<W>(rows + k_offsets[k], out);
    return;
  }
  constexpr int kWords = W == 6 ? 6 : 8;
  for (int64_t k = 0; k < s.count;) {
    const int64_t run = s.k_run[k] < s.count - k ? s.k_run[k] : s.count - k;
    if (run < 8) {
      pack_f32_plain<W>(s, out, k, k + run);
      k += run;
      continue;
    }
    for (int w = 0; w < W; w += 8) {
      __m256i rows[8];
      load_rows8(s, s.k_offsets[k], w, 4, rows);
      machine::transpose8(rows);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) store_words<kWords>(out + (k + i) * W + w, rows[i], i == 7);
    }
    k += 8;
  }
}

// Packs one k (or four) of all panels, then the next, so memory is read in order. Rows whose length is a
// power of two map to the same few sets of L1, so L1 cannot hold more of them at a time.
template <int W>
[[maybe_unused]] void pack_f32_across_avx2(const PanelSource& s, int64_t panels, int64_t stride,
                                           void* out_bytes) {
  static_assert(W == 6 || W == 16);
  const float* rows = static_cast<const float*>(s.base) + s.w_offsets[0];
  const int64_t floats = stride / 4;
  float* out = static_cast<float*>(out_bytes);
  int64_t k = 0;
  if constexpr (W == 6)
    for (; k + 4 <= s.count; k += 4, out += 4 * W) {
      const float *a = rows + s.k_offsets[k], *b = rows + s.k_offsets[k + 1];
      const float *c = rows + s.k_offsets[k + 2], *d = rows + s.k_offsets[k + 3];
      for (int64_t p = 0; p < panels; ++p)
        join_rows6(a + p * W, b + p * W, c + p * W, d + p * W, out + p * floats);
    }
  for (; k < s.count; ++k, out += W) {
    const float* from = rows + s.k_offsets[k];
    for (int64_t p = 0; p < panels; ++p) copy_row<W>(from + p * W, out + p * floats);
  }
}

// True when the group at k0 is complete and contiguous along k.
inline bool group_is_run8(const PanelSource& s, int64_t k0) {
  return s.count - k0 >= kGroup && s.k_run[k0] >= kGroup;
}

template <int W>
[[maybe_unused]] void pack_group_pairs_avx2(const PanelSource& s, int64_t k0, uint32_t* out) {
  static_assert(W == 16);
  if (s.w_contiguous && s.width == W && s.count - k0 >= kGroup) {
    const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.w_offsets[0];
    const int64_t* k_offsets = s.k_offsets + k0;
    for (int j = 0; j < kGroup / 2; ++j) {
      const __m256i even = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + k_offsets[2 * j]));
      const __m256i odd = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + k_offsets[2 * j + 1]));
      const __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
      __m256i* to = reinterpret_cast<__m256i*>(out + j * W);
      _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
      _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
  } else if (!s.w_contiguous && group_is_run8(s, k0)) {
    for (int half = 0; half < 2; ++half) {
      for (int w = 0; w < W; w += 8) {
        __m256i rows[8];
        load_rows8(s, s.k_offsets[k0] + 16 * half, w, 2, rows);
        machine::transpose8(rows);
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) store_words<8>(out + (8 * half + j) * W + w, rows[j], false);
      }
    }
  } else {
    pack_group_pairs<W>(s, k0, out);
  }
}

template <int W>
[[maybe_unused]] void pack_group_expanded_avx2(const PanelSource& s, int64_t k0, uint32_t* out) {
  static_assert(W == 6);
  if (s.w_contiguous && s.width == W && s.count - k0 >= kGroup) {
    const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.w_offsets[0];
    const int64_t* k_offsets = s.k_offsets + k0;
    for (int k = 0; k < kGroup; ++k, out += W) {
      const uint16_t* from = base + k_offsets[k];
      int rest;
      std::memcpy(&rest, from + 4, sizeof rest);
      const __m128i zero = _mm_setzero_si128();
      const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi16(zero, first));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + 4),
                       _mm_unpacklo_epi16(zero, _mm_cvtsi32_si128(rest)));
    }
  } else if (!s.w_contiguous && group_is_run8(s, k0)) {
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    for (int half = 0; half < 2; ++half, out += 16 * W) {
      __m256i rows[8];
      load_rows8(s, s.k_offsets[k0] + 16 * half, 0, 2, rows);
      machine::transpose8(rows);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        store_words<W>(out + 2 * j * W, _mm256_slli_epi32(rows[j], 16), false);
        store_words<W>(out + (2 * j + 1) * W, _mm256_and_si256(rows[j], high), j == 7);
      }
    }
  } else {
    pack_group_expanded<W>(s, k0, out);
  }
}

}  // namespace
}  // namespace ostro::kernels
