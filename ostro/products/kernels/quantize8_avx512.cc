// The quantisers of blocks (docs/spec/numerics.md, N20) on AVX-512. The environment of N0 makes denormals
// zero.
//
// floor(t + u) is computed as the floor of fma(x, 1 / scale, u): t is exact unless it is tiny, and then the
// sum with u, which is at least 2^-17, is u either way.
//
// gcc 12 takes what its own header leaves undefined, and its instructions do not read, for a mistake (its bug
// 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <cstring>

#include "ostro/ir/program/int8_limits.h"
#include "ostro/machine/vector/transpose16_avx512.inc.h"
#include "ostro/products/kernels/quantize8_draws_avx512.inc.h"
#include "ostro/products/kernels/quantize8_scale.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kRowsAtOnce = 64, kQuarters = kInt8Columns / 16;

inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

// Elements i to i + 15 of x as f32; those that the mask leaves out are 0 and not read.
template <bool kBf16>
inline __m512 load16(const void* x, int64_t i, __mmask16 mask) {
  if constexpr (!kBf16) return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(x) + i);
  const __m256i halves = _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(x) + i);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

inline __m512i magnitude_of(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

// The integers of 16 elements, of columns that are not kept 0. `h`: their 16 bits each.
inline __m512i nearest16(__m512 x, __m512 inverse, __mmask16 keep) {
  return _mm512_cvtps_epi32(_mm512_maskz_mul_ps(keep, x, inverse));
}
inline __m512i dithered16(__m512 x, __m512 inverse, __mmask16 keep, const uint16_t* h) {
  // 1 + u, whose bits are those of h between two constants.
  const __m512i bits = _mm512_or_si512(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(h))), 7),
      _mm512_set1_epi32(0x3f800040));
  const __m512 u = _mm512_sub_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(1.0f));
  return _mm512_cvt_roundps_epi32(_mm512_maskz_fmadd_ps(keep, x, inverse, u),
                                  _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

template <bool kBf16>
inline uint32_t largest_of(const void* x, int64_t count) {
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; i += 16)
    largest = _mm512_max_epu32(largest, magnitude_of(load16<kBf16>(x, i, first_lanes(count - i))));
  return _mm512_reduce_max_epu32(largest);
}

template <bool kBf16>
inline float row_of(const Int8RowBlock& b) {
  const BlockScale s = scale_of_block(largest_of<kBf16>(b.x, b.count));
  if (s.inverse == 0.0f) {
    std::memset(b.q, 0, static_cast<size_t>(b.count));
    return s.scale;
  }
  alignas(64) uint16_t room[draw_room(ir::kMaxInt8Block)];
  const uint16_t* h = b.draws != nullptr ? draw_row(*b.draws, b.index, b.count, room) : nullptr;
  const __m512 inverse = _mm512_set1_ps(s.inverse);
  const void* const x = b.x;
  int8_t* const to = b.q;
  const auto numbers = [=](int64_t i, __mmask16 mask) {
    const __m512 x16 = load16<kBf16>(x, i, mask);
    return _mm512_cvtepi32_epi8(h == nullptr ? nearest16(x16, inverse, 0xffff)
                                             : dithered16(x16, inverse, 0xffff, h + i));
  };
  const int64_t count = b.count, whole = count / 16 * 16;
  for (int64_t i = 0; i < whole; i += 16)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), numbers(i, 0xffff));
  if (whole < count) {
    alignas(16) int8_t rest[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(rest), numbers(whole, first_lanes(count - whole)));
    std::memcpy(to + whole, rest, static_cast<size_t>(count - whole));
  }
  return s.scale;
}

float row(const Int8RowBlock& b) { return b.bf16 ? row_of<true>(b) : row_of<false>(b); }

// The largest magnitude of each column.
template <bool kBf16>
inline void largest_by_column(const Int8ColumnBlock& b, uint32_t* out) {
  constexpr int64_t kRowsAhead = 16, kElement = kBf16 ? 2 : 4;
  __m512i largest[kQuarters] = {};
  for (int64_t row = 0; row < b.rows; ++row) {
    // Rows are far apart, which no hardware prefetcher follows.
    const char* ahead = static_cast<const char*>(b.x) +
                        b.row_at[row + kRowsAhead < b.rows ? row + kRowsAhead : row] * kElement;
    for (int64_t at = 0; at < b.columns * kElement; at += 64) __builtin_prefetch(ahead + at, 0, 3);
    for (int i = 0; i < kQuarters; ++i)
      largest[i] = _mm512_max_epu32(largest[i], magnitude_of(load16<kBf16>(b.x, b.row_at[row] + 16 * i,
                                                                           first_lanes(b.columns - 16 * i))));
  }
  for (int i = 0; i < kQuarters; ++i) _mm512_storeu_si512(out + 16 * i, largest[i]);
}

// Writes 16 columns from `column` on, `count` rows from `first` on: words[i] has four integers of each
// column, those of rows 4 i and after. 16 such words of a column are its integers in order. (Not inlined: it
// is long, and runs once for 1,024 integers.)
[[gnu::noinline]] void store_columns(const Int8ColumnBlock& b, int column, int64_t first, int64_t count,
                                     __m512i (&words)[16]) {
  machine::transpose16(words);
  const int columns = b.columns - column < 16 ? b.columns - column : 16;
  for (int i = 0; i < columns; ++i) {
    int8_t* to = b.q + (column + i) * b.q_stride + first;
    if (count == kRowsAtOnce) {
      _mm512_storeu_si512(to, words[i]);
    } else {
      alignas(64) int8_t rest[kRowsAtOnce];
      _mm512_store_si512(rest, words[i]);
      std::memcpy(to, rest, static_cast<size_t>(count));
    }
  }
}

// The integers of 16 columns from `column` on and of up to kRowsAtOnce rows from `first` on. h[i] are the
// bits of the strip's first column in row i of them.
template <bool kBf16, bool kDithered>
inline void columns16(const Int8ColumnBlock& b, int column, int64_t first, __m512 inverse, __mmask16 keep,
                      const uint16_t* const* h) {
  // In each 128 bits the packs leave four integers of each row, row after row.
  const __m512i by_column =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __mmask16 valid = first_lanes(b.columns - column);
  const int64_t count = b.rows - first < kRowsAtOnce ? b.rows - first : kRowsAtOnce;
  const auto numbers = [&](int64_t row) {
    if (row >= count) return _mm512_setzero_si512();
    const __m512 x = load16<kBf16>(b.x, b.row_at[first + row] + column, valid);
    if constexpr (kDithered) return dithered16(x, inverse, keep, h[row] + column);
    return nearest16(x, inverse, keep);
  };
  __m512i words[16];
  for (int64_t i = 0; i < 16; ++i) {
    const __m512i pairs = _mm512_packs_epi32(numbers(4 * i), numbers(4 * i + 1));
    const __m512i others = _mm512_packs_epi32(numbers(4 * i + 2), numbers(4 * i + 3));
    words[i] = _mm512_shuffle_epi8(_mm512_packs_epi16(pairs, others), by_column);
  }
  store_columns(b, column, first, count, words);
}

template <bool kBf16>
inline void columns_of(const Int8ColumnBlock& b) {
  alignas(64) uint32_t largest[kInt8Columns];
  alignas(64) float inverse[kInt8Columns];
  alignas(64) uint16_t room[kRowsAtOnce][draw_room(kInt8Columns)];
  const uint16_t* h[kRowsAtOnce];
  __mmask16 keep[kQuarters] = {};
  largest_by_column<kBf16>(b, largest);
  for (int i = 0; i < kInt8Columns; ++i) {
    const BlockScale s = scale_of_block(largest[i]);
    inverse[i] = s.inverse;
    if (s.inverse != 0.0f) keep[i / 16] = static_cast<__mmask16>(keep[i / 16] | 1 << i % 16);
    if (i < b.columns) b.scales[i * b.scale_stride] = s.scale;
  }
  for (int64_t first = 0; first < b.rows; first += kRowsAtOnce) {
    if (b.draws != nullptr)
      for (int64_t i = 0; i < kRowsAtOnce && first + i < b.rows; ++i)
        h[i] = draw_row(*b.draws, b.index[first + i], b.columns, room[i]);
    for (int column = 0; column < b.columns; column += 16) {
      const __m512 scale = _mm512_loadu_ps(inverse + column);
      if (b.draws != nullptr)
        columns16<kBf16, true>(b, column, first, scale, keep[column / 16], h);
      else
        columns16<kBf16, false>(b, column, first, scale, keep[column / 16], h);
    }
  }
}

void columns(const Int8ColumnBlock& b) { b.bf16 ? columns_of<true>(b) : columns_of<false>(b); }

}  // namespace

const Quantize8Kernel& quantize8_avx512() {
  static constexpr Quantize8Kernel kKernel = {row, columns};
  return kKernel;
}

}  // namespace ostro::kernels
