// Quad, pair_group, transpose_words, ...: the layouts of bf16 operands of attention for one matrix
// instruction, and conversions between them.
//
// A product C[row][lane] += sum over k of A(row, k) * B(k, lane) takes k in groups of 32 = 16 words of two
// bf16. A lies in rows: [row][group][word]. B lies in words: [group][word][lane]. Which two of the 32 share a
// word, and which word they are, is the policy's (P) quad order: of the elements 4 q + i, kOrder names those
// of the low and high half of word first(q), then of second(q).
//
// A policy has
//   kOrder[4], kNatural, first(q), second(q)
//   enter(), leave()   around a thread's products
//   multiply(c, ldc, rows, a, lda, b, ldb, groups, from_zero)   32 lanes, rows in multiples of 16; lda and
//                      ldb in words
//   kLeastQueries      where it is for paged attention: with fewer, products of vectors are faster
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ostro/kernels/attention/kernels/attention_common.inc.h"
#include "ostro/machine/vector/pair_rows_avx512.inc.h"
#include "ostro/machine/vector/transpose16_avx512.inc.h"

namespace ostro::kernels {

inline constexpr int kLaneBlock = 32;  // lanes of one multiply

// out[i] = low[i], high[i] of two rows of 16 bf16 that lie in one register.
template <class P>
inline __m512i interleaved(__m512i rows) {
  alignas(64) static constexpr uint16_t kIndex[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kIndex), rows);
}

// Four vectors of f32 rounded to bf16, as words of B: element 4 q + i of lane n is x[i][n].
struct Quad {
  __m512i first, second;  // two rows of 16 bf16 each, in the policy's order
};

template <class P>
inline Quad round_quad(const __m512 (&x)[4]) {
  const auto both = [](__m512 low, __m512 high) {
    return __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
  };
  return {both(x[P::kOrder[0]], x[P::kOrder[1]]), both(x[P::kOrder[2]], x[P::kOrder[3]])};
}

template <class P>
inline void store_words(const Quad& quad, int q, uint32_t* group, int64_t ld) {
  _mm512_storeu_si512(group + P::first(q) * ld, interleaved<P>(quad.first));
  _mm512_storeu_si512(group + P::second(q) * ld, interleaved<P>(quad.second));
}

// Writes such vectors as elements of A: lane n is element 16 `half` + n of a group of row i, rows `ld` words
// apart.
template <class P>
inline void store_rows(const Quad& quad, int half, uint32_t* group, int64_t ld) {
  const auto store = [&](__m256i x, int row) {
    uint32_t* to = group + row * ld;
    if constexpr (P::kNatural) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * half), x);
    } else {
      alignas(32) static constexpr uint16_t kIndex[16] = {2, 0, 6, 4, 10, 8, 14, 12,
                                                          3, 1, 7, 5, 11, 9, 15, 13};
      x = _mm256_permutexvar_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(kIndex)), x);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * half), _mm256_castsi256_si128(x));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8 + 4 * half), _mm256_extracti128_si256(x, 1));
    }
  };
  store(_mm512_castsi512_si256(quad.first), P::kOrder[0]);
  store(_mm512_extracti64x4_epi64(quad.first, 1), P::kOrder[1]);
  store(_mm512_castsi512_si256(quad.second), P::kOrder[2]);
  store(_mm512_extracti64x4_epi64(quad.second, 1), P::kOrder[3]);
}

// Stores up to 16 values, as many as are left, to bf16 by one rounding.
template <class P>
inline void store_lanes(__m512 x, int64_t left, void* target, int64_t offset, machine::FloatType type) {
  const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
  if (type == machine::FloatType::kF32)
    _mm512_mask_storeu_ps(static_cast<float*>(target) + offset, mask, x);
  else
    _mm256_mask_storeu_epi16(static_cast<uint16_t*>(target) + offset, mask,
                             __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(x)));
}

// A row of bf16 with +0 up to `wide`, a multiple of 32; none at all: `from` is nullptr.
template <class P>
inline void copy_row(const uint16_t* from, int64_t dims, int64_t wide, uint16_t* to) {
  for (int64_t d = 0; d < wide; d += 32) {
    if (from == nullptr) {
      _mm512_storeu_si512(to + d, _mm512_setzero_si512());
      continue;
    }
    const int64_t left = dims - d;
    const __mmask32 mask = left >= 32 ? ~uint32_t{0} : (uint32_t{1} << left) - 1;
    _mm512_storeu_si512(to + d, _mm512_maskz_loadu_epi16(mask, from + d));
  }
}

// Rows in natural order to rows of A, in place; any number of whole groups.
template <class P>
inline void order_rows(uint16_t* rows, int64_t elements) {
  if constexpr (!P::kNatural) {
    alignas(64) uint16_t index[32];
    for (int q = 0; q < 8; ++q)
      for (int i = 0; i < 4; ++i)
        index[2 * (i < 2 ? P::first(q) : P::second(q)) + i % 2] = static_cast<uint16_t>(4 * q + P::kOrder[i]);
    const __m512i order = _mm512_load_si512(index);
    for (int64_t i = 0; i < elements; i += 32)
      _mm512_storeu_si512(rows + i, _mm512_permutexvar_epi16(order, _mm512_loadu_si512(rows + i)));
  }
}

// A group of B: rows 0 to 31 of `units` blocks of 32 lanes as words, `ld` words from one to the next; those
// of a block `apart` words behind the block before. `row(k, u)` is row k of block u.
template <class P, class Row>
inline void pair_group(const Row& row, int64_t units, uint32_t* out, int64_t ld, int64_t apart) {
  for (int q = 0; q < 8; ++q)
    for (int pair = 0; pair < 2; ++pair) {
      uint32_t* to = out + (pair == 0 ? P::first(q) : P::second(q)) * ld;
      for (int64_t u = 0; u < units; ++u, to += apart)
        machine::store_paired(row(4 * q + P::kOrder[2 * pair], u), row(4 * q + P::kOrder[2 * pair + 1], u),
                              to);
    }
}

// Natural rows [count][wide], count a multiple of 32, to words of B in which k counts rows: [count /
// 2][wide].
template <class P>
inline void pair_rows(const uint16_t* rows, int64_t wide, int64_t count, uint32_t* out) {
  for (int64_t group = 0; group < count; group += 32) {
    const auto row = [&](int k, int64_t u) __attribute__((always_inline)) {
      return _mm512_loadu_si512(rows + (group + k) * wide + u * kLaneBlock);
    };
    pair_group<P>(row, wide / kLaneBlock, out + group / 2 * wide, wide, kLaneBlock);
  }
}

// out[j][i] = in[i][j], words or floats; rows and columns in multiples of 16.
template <class P>
inline void transpose_words(const void* in, int64_t ld_in, int64_t rows, int64_t columns, void* out,
                            int64_t ld_out) {
  const uint32_t* from = static_cast<const uint32_t*>(in);
  uint32_t* to = static_cast<uint32_t*>(out);
  for (int64_t i = 0; i < rows; i += 16)
    for (int64_t j = 0; j < columns; j += 16) {
      __m512i block[16];
      for (int r = 0; r < 16; ++r) block[r] = _mm512_loadu_si512(from + (i + r) * ld_in + j);
      machine::transpose16(block);
      for (int r = 0; r < 16; ++r) _mm512_storeu_si512(to + (j + r) * ld_out + i, block[r]);
    }
}

}  // namespace ostro::kernels
