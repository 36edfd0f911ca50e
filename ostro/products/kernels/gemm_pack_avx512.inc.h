// pack_f32_avx512, pack_group_pairs_avx512, ...: packers for AVX-512, in the layouts of gemm_pack.inc.h.
// There are fast ones for contiguous rows and for contiguous k (a 16 x 16 transpose of words). The plain one
// serves all other cases.
#pragma once

#include <immintrin.h>

#include "ostro/machine/vector/transpose16_avx512.inc.h"
#include "ostro/products/tile/gemm_pack.inc.h"

namespace ostro::kernels {
namespace {

inline __mmask16 lanes(int count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

template <int W>
[[maybe_unused]] void pack_f32_avx512(const PanelSource& s, void* out_bytes) {
  const float* base = static_cast<const float*>(s.base);
  float* out = static_cast<float*>(out_bytes);
  if (s.w_contiguous) {
    // Copies, because the stores below could alias `s` for all the compiler knows.
    const float* rows = base + s.w_offsets[0];
    const int64_t* k_offsets = s.k_offsets;
    const int64_t count = s.count;
    constexpr int kVectors = (W + 15) / 16;
    __mmask16 valid[kVectors];
    for (int v = 0; v < kVectors; ++v) valid[v] = lanes(s.width - 16 * v);
    for (int64_t k = 0; k < count; ++k) {
      const float* from = rows + k_offsets[k];
      for (int v = 0; v < kVectors; ++v) {
        const __m512 x = _mm512_maskz_loadu_ps(valid[v], from + 16 * v);
        _mm512_mask_storeu_ps(out + k * W + 16 * v, lanes(W - 16 * v), x);
      }
    }
    return;
  }
  int64_t k = 0;
  while (k < s.count) {
    const int64_t run = s.k_run[k] < s.count - k ? s.k_run[k] : s.count - k;
    if (run < 4) {
      pack_f32_plain<W>(s, out, k, k + run);
      k += run;
      continue;
    }
    const int steps = run < 16 ? static_cast<int>(run) : 16;
    for (int w = 0; w < W; w += 16) {
      __m512i rows[16];
      for (int r = 0; r < 16; ++r) {
        rows[r] = w + r < s.width
                      ? _mm512_maskz_loadu_epi32(lanes(steps), base + s.w_offsets[w + r] + s.k_offsets[k])
                      : _mm512_setzero_si512();
      }
      machine::transpose16(rows);
      for (int i = 0; i < 16; ++i)
        if (i < steps) _mm512_mask_storeu_epi32(out + (k + i) * W + w, lanes(W - w), rows[i]);
    }
    k += steps;
  }
}

// Up to 16 neighbouring bf16 values as words with a zero high half.
inline __m512i load_words(const uint16_t* from, __mmask16 mask) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
}

// True when the group at k0 is complete and contiguous along k.
inline bool group_is_run(const PanelSource& s, int64_t k0) {
  return s.count - k0 >= kGroup && s.k_run[k0] >= kGroup;
}

// 16 rows of 32 contiguous elements from panel row w on, zero beyond the width.
inline void load_rows(const PanelSource& s, int64_t k0, int w, __m512i (&rows)[16]) {
  const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.k_offsets[k0];
  for (int r = 0; r < 16; ++r)
    rows[r] = w + r < s.width ? _mm512_loadu_si512(base + s.w_offsets[w + r]) : _mm512_setzero_si512();
}

// Words (low = element k0 + low, high = element k0 + high) of up to 16 panel rows from w on, rows contiguous.
inline __m512i load_pair(const PanelSource& s, int64_t low, int64_t high, int w) {
  const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.w_offsets[0] + w;
  const __mmask16 mask = lanes(s.width - w);
  const __m512i x = low < s.count ? load_words(base + s.k_offsets[low], mask) : _mm512_setzero_si512();
  const __m512i y = high < s.count ? load_words(base + s.k_offsets[high], mask) : _mm512_setzero_si512();
  return _mm512_or_si512(x, _mm512_slli_epi32(y, 16));
}

template <int W>
[[maybe_unused]] void pack_group_pairs_avx512(const PanelSource& s, int64_t k0, uint32_t* out) {
  if (s.w_contiguous && s.width == W && W % 16 == 0 && s.count - k0 >= kGroup) {
    const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.w_offsets[0];
    const int64_t* k_offsets = s.k_offsets + k0;
    for (int j = 0; j < 16; ++j) {
      const uint16_t* even = base + k_offsets[2 * j];
      const uint16_t* odd = base + k_offsets[2 * j + 1];
      for (int w = 0; w < W; w += 16) {
        const __m512i x =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + w)));
        const __m512i y =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + w)));
        _mm512_storeu_si512(out + j * W + w, _mm512_or_si512(x, _mm512_slli_epi32(y, 16)));
      }
    }
    return;
  }
  if (s.w_contiguous) {
    for (int j = 0; j < 16; ++j)
      for (int w = 0; w < W; w += 16)
        _mm512_mask_storeu_epi32(out + j * W + w, lanes(W - w), load_pair(s, k0 + 2 * j, k0 + 2 * j + 1, w));
  } else if (group_is_run(s, k0)) {
    for (int w = 0; w < W; w += 16) {
      __m512i rows[16];
      load_rows(s, k0, w, rows);
      machine::transpose16(rows);
      for (int j = 0; j < 16; ++j) _mm512_mask_storeu_epi32(out + j * W + w, lanes(W - w), rows[j]);
    }
  } else {
    pack_group_pairs<W>(s, k0, out);
  }
}

// Row of the chains layout for the word that a quadruple's shuffle puts at position i: even, odd, even, ...
constexpr int chain_row(int i) { return (i & 1) * 8 + i / 2; }

template <int W>
[[maybe_unused]] void pack_group_chains_avx512(const PanelSource& s, int64_t k0, uint32_t* out) {
  if (s.w_contiguous) {
    for (int i = 0; i < 16; ++i) {
      const int64_t first = k0 + 4 * (i / 2) + (i & 1);
      for (int w = 0; w < W; w += 16)
        _mm512_mask_storeu_epi32(out + chain_row(i) * W + w, lanes(W - w), load_pair(s, first + 2, first, w));
    }
  } else if (group_is_run(s, k0)) {
    // 16-bit elements 0 1 2 3 of each 8 bytes become 2 0 3 1: the even word, then the odd one.
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
    for (int w = 0; w < W; w += 16) {
      __m512i rows[16];
      load_rows(s, k0, w, rows);
      for (int r = 0; r < 16; ++r) rows[r] = _mm512_shuffle_epi8(rows[r], order);
      machine::transpose16(rows);
      for (int i = 0; i < 16; ++i)
        _mm512_mask_storeu_epi32(out + chain_row(i) * W + w, lanes(W - w), rows[i]);
    }
  } else {
    pack_group_chains<W>(s, k0, out);
  }
}

// W is a multiple of 16.
template <int W>
[[maybe_unused]] void pack_group_tiles_avx512(const PanelSource& s, int64_t k0, uint32_t* out) {
  if (group_is_run(s, k0)) {
    for (int w = 0; w < W; w += 16) {
      __m512i rows[16];
      load_rows(s, k0, w, rows);
      for (int r = 0; r < 16; ++r) _mm512_store_si512(out + (w + r) * 16, rows[r]);
    }
  } else if (s.w_contiguous && W == 32 && s.width == W && s.count - k0 >= kGroup) {
    // Interleaving within 128-bit lanes leaves rows 0-3, 8-11, 16-19, 24-27 in `low` and the others in
    // `high`.
    const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.w_offsets[0];
    __m512i low[16], high[16];
    for (int j = 0; j < 16; ++j) {
      const __m512i x = _mm512_loadu_si512(base + s.k_offsets[k0 + 2 * j]);
      const __m512i y = _mm512_loadu_si512(base + s.k_offsets[k0 + 2 * j + 1]);
      low[j] = _mm512_unpacklo_epi16(x, y);
      high[j] = _mm512_unpackhi_epi16(x, y);
    }
    machine::transpose16(low);
    machine::transpose16(high);
    for (int r = 0; r < 16; ++r) {
      const int row = r / 4 * 8 + r % 4;
      _mm512_store_si512(out + row * 16, low[r]);
      _mm512_store_si512(out + (row + 4) * 16, high[r]);
    }
  } else if (s.w_contiguous) {
    for (int w = 0; w < W; w += 16) {
      __m512i rows[16];
      for (int j = 0; j < 16; ++j) rows[j] = load_pair(s, k0 + 2 * j, k0 + 2 * j + 1, w);
      machine::transpose16(rows);
      for (int r = 0; r < 16; ++r) _mm512_store_si512(out + (w + r) * 16, rows[r]);
    }
  } else {
    pack_group_tiles<W>(s, k0, out);
  }
}

// W at most 16: f32 values, one store of 16 lanes cut to W per k.
template <int W>
[[maybe_unused]] void pack_group_expanded_avx512(const PanelSource& s, int64_t k0, uint32_t* out) {
  const __mmask16 mask = lanes(W);
  if (s.w_contiguous) {
    for (int k = 0; k < kGroup; ++k) {
      const uint16_t* base = static_cast<const uint16_t*>(s.base) + s.w_offsets[0];
      const __m512i x =
          k0 + k < s.count ? load_words(base + s.k_offsets[k0 + k], lanes(s.width)) : _mm512_setzero_si512();
      _mm512_mask_storeu_epi32(out + k * W, mask, _mm512_slli_epi32(x, 16));
    }
  } else if (group_is_run(s, k0)) {
    __m512i rows[16];
    load_rows(s, k0, 0, rows);
    machine::transpose16(rows);
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    for (int j = 0; j < 16; ++j) {
      _mm512_mask_storeu_epi32(out + 2 * j * W, mask, _mm512_slli_epi32(rows[j], 16));
      _mm512_mask_storeu_epi32(out + (2 * j + 1) * W, mask, _mm512_and_si512(rows[j], high));
    }
  } else {
    pack_group_expanded<W>(s, k0, out);
  }
}

}  // namespace
}  // namespace ostro::kernels
