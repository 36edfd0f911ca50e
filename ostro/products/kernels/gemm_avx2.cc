// Matrix product tiles for AVX2 + FMA: 6 x 16, 12 accumulators. f32 takes A packed or as it lies. bf16 takes
// three rows at a time, so that 16 registers hold both chains of N7; B is widened once for many rows of A.
#include <immintrin.h>

#include "ostro/products/kernels/gemm_pack_avx2.inc.h"
#include "ostro/products/tile/gemm_store.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kMr = 6, kNr = 16;

// Element (r, i) of A is a[r * row + i * step].
template <int R>
void f32_tile(int64_t k, const float* a, int64_t row, int64_t step, const float* b, float* c, int64_t ldc,
              bool first) {
  __m256 acc[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    acc[r][0] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + r * ldc);
    acc[r][1] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + r * ldc + 8);
  }
  // With two base pointers, address modes reach all six rows.
  const float* lower = a + 3 * row;
#pragma GCC unroll 8
  for (int64_t i = 0; i < k; ++i, a += step, lower += step, b += kNr) {
    const __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 x = _mm256_broadcast_ss(r < 3 ? a + r * row : lower + (r - 3) * row);
      acc[r][0] = _mm256_fmadd_ps(x, b0, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(x, b1, acc[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    _mm256_storeu_ps(c + r * ldc, acc[r][0]);
    _mm256_storeu_ps(c + r * ldc + 8, acc[r][1]);
  }
}

// One group of R <= 3 rows, both chains at once.
template <int R>
inline void bf16_group(const float* a, const float* b, float* c, int64_t ldc, bool zero) {
  __m256 acc[2][R][2];
#pragma GCC unroll 2
  for (int odd = 0; odd < 2; ++odd)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[odd][r][0] = acc[odd][r][1] = _mm256_setzero_ps();
#pragma GCC unroll 16
  for (int j = 0; j < kGroup / 2; ++j) {
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
      const float* row = b + (2 * j + odd) * kNr;
      const __m256 b0 = _mm256_load_ps(row), b1 = _mm256_load_ps(row + 8);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256 x = _mm256_broadcast_ss(a + (2 * j + odd) * kMr + r);
        acc[odd][r][0] = _mm256_fmadd_ps(x, b0, acc[odd][r][0]);
        acc[odd][r][1] = _mm256_fmadd_ps(x, b1, acc[odd][r][1]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      float* to = c + r * ldc + 8 * h;
      const __m256 sum = _mm256_add_ps(acc[0][r][h], acc[1][r][h]);
      _mm256_storeu_ps(to, _mm256_add_ps(zero ? _mm256_setzero_ps() : _mm256_loadu_ps(to), sum));
    }
  }
}

// Pairs to rows of f32.
void widen_pairs(int64_t k, const void* packed, void* wide) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const __m256i* from = static_cast<const __m256i*>(packed);
  __m256i* to = static_cast<__m256i*>(wide);
  for (int64_t j = 0; j < k / 2; ++j, from += 2, to += 4) {
    const __m256i left = _mm256_load_si256(from), right = _mm256_load_si256(from + 1);
    _mm256_store_si256(to, _mm256_slli_epi32(left, 16));
    _mm256_store_si256(to + 1, _mm256_slli_epi32(right, 16));
    _mm256_store_si256(to + 2, _mm256_and_si256(left, high));
    _mm256_store_si256(to + 3, _mm256_and_si256(right, high));
  }
}

// Each group in two parts of at most three rows: 16 registers do not hold both chains of six.
template <int R>
void bf16_tile(int64_t k, const float* a, const float* b, float* c, int64_t ldc, bool first) {
  constexpr int kHalf = R < 3 ? R : 3;
  for (int64_t k0 = 0; k0 < k; k0 += kGroup, a += kGroup * kMr, b += kGroup * kNr) {
    const bool zero = first && k0 == 0;
    bf16_group<kHalf>(a, b, c, ldc, zero);
    if constexpr (R > kHalf) bf16_group<R - kHalf>(a + kHalf, b, c + kHalf * ldc, ldc, zero);
  }
}

// round_row_plain of gemm_pack.inc.h, eight at a time.
void round_row_avx2(const float* in, int64_t count, uint16_t* out) {
  const __m256i one = _mm256_set1_epi32(1), half = _mm256_set1_epi32(0x7fff);
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff), quiet = _mm256_set1_epi32(0x40);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
    const __m256i high = _mm256_srli_epi32(x, 16), size = _mm256_and_si256(x, magnitude);
    const __m256i up = _mm256_add_epi32(x, _mm256_add_epi32(half, _mm256_and_si256(high, one)));
    const __m256i nan = _mm256_cmpgt_epi32(size, _mm256_set1_epi32(0x7f800000));
    const __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), size);
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(x, 31), 15);
    __m256i y = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), sign, tiny);
    y = _mm256_blendv_epi8(y, _mm256_or_si256(high, quiet), nan);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm_packus_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1)));
  }
  if (i < count) round_row_plain(in + i, count - i, out + i);
}

constexpr decltype(&f32_tile<1>) kF32Tiles[] = {f32_tile<1>, f32_tile<2>, f32_tile<3>,
                                                f32_tile<4>, f32_tile<5>, f32_tile<6>};

void f32_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  kF32Tiles[rows - 1](k, static_cast<const float*>(a), 1, kMr, static_cast<const float*>(b), c, ldc, first);
}

void f32_multiply_rows(int64_t k, const float* a, int64_t lda, const void* b, float* c, int64_t ldc, int rows,
                       bool first) {
  kF32Tiles[rows - 1](k, a, lda, 1, static_cast<const float*>(b), c, ldc, first);
}

void bf16_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  constexpr decltype(&bf16_tile<1>) kTiles[] = {bf16_tile<1>, bf16_tile<2>, bf16_tile<3>,
                                                bf16_tile<4>, bf16_tile<5>, bf16_tile<6>};
  kTiles[rows - 1](k, static_cast<const float*>(a), static_cast<const float*>(b), c, ldc, first);
}

}  // namespace

const GemmKernel& gemm_f32_avx2() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         1,
                                         kMr * 4,
                                         kNr * 4,
                                         pack_f32_avx2<kMr>,
                                         pack_f32_avx2<kNr>,
                                         f32_multiply,
                                         1,
                                         round_row_avx2,
                                         store_f32_plain<kNr>,
                                         store_bf16_plain<kNr, round_row_avx2>,
                                         nullptr,
                                         nullptr,
                                         512,
                                         192,
                                         nullptr,
                                         0,
                                         true,
                                         f32_multiply_rows,
                                         false,
                                         pack_f32_across_avx2<kMr>,
                                         pack_f32_across_avx2<kNr>};
  return kKernel;
}

const GemmKernel& gemm_bf16_avx2() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         kGroup,
                                         kMr * 4,
                                         kNr * 2,
                                         pack_groups<kGroup * kMr, pack_group_expanded_avx2<kMr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_pairs_avx2<kNr>>,
                                         bf16_multiply,
                                         1,
                                         round_row_avx2,
                                         store_f32_plain<kNr>,
                                         store_bf16_plain<kNr, round_row_avx2>,
                                         nullptr,
                                         nullptr,
                                         512,
                                         192,
                                         widen_pairs,
                                         kNr * 4,
                                         true,
                                         nullptr,
                                         false};
  return kKernel;
}

}  // namespace ostro::kernels
