// Matrix product tiles for AVX2 + FMA: 6 x 16, 12 accumulators. bf16 runs the even chain, parks it in L1,
// then runs the odd one, because 16 registers do not hold both.
#include <immintrin.h>

#include "ostro/cpu/kernels/gemm_pack.inc.h"
#include "ostro/cpu/kernels/gemm_store.inc.h"

namespace ostro::cpu {
namespace {

constexpr int kMr = 6, kNr = 16;

template <int R>
void f32_tile(int64_t k, const float* a, const float* b, float* c, int64_t ldc, bool first) {
  __m256 acc[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    acc[r][0] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + r * ldc);
    acc[r][1] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(c + r * ldc + 8);
  }
  for (int64_t i = 0; i < k; ++i, a += kMr, b += kNr) {
    const __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + r);
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

// One chain of one group: Odd picks the high halves of the pairs, else the low ones.
template <int R, bool Odd>
inline void bf16_chain(const float* a, const uint32_t* b, __m256 (&acc)[R][2]) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  for (int j = 0; j < kGroup / 2; ++j) {
    const __m256i w0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(b + j * kNr));
    const __m256i w1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(b + j * kNr + 8));
    const __m256 b0 = _mm256_castsi256_ps(Odd ? _mm256_and_si256(w0, high) : _mm256_slli_epi32(w0, 16));
    const __m256 b1 = _mm256_castsi256_ps(Odd ? _mm256_and_si256(w1, high) : _mm256_slli_epi32(w1, 16));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + (2 * j + Odd) * kMr + r);
      acc[r][0] = _mm256_fmadd_ps(x, b0, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(x, b1, acc[r][1]);
    }
  }
}

template <int R>
void bf16_tile(int64_t k, const float* a, const uint32_t* b, float* c, int64_t ldc, bool first) {
  for (int64_t k0 = 0; k0 < k; k0 += kGroup, a += kGroup * kMr, b += kGroup / 2 * kNr) {
    alignas(32) float even[R][kNr];
    __m256 acc[R][2];
    bf16_chain<R, false>(a, b, acc);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      _mm256_store_ps(even[r], acc[r][0]);
      _mm256_store_ps(even[r] + 8, acc[r][1]);
    }
    bf16_chain<R, true>(a, b, acc);
    const bool zero = first && k0 == 0;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int h = 0; h < 2; ++h) {
        float* to = c + r * ldc + 8 * h;
        const __m256 sum = _mm256_add_ps(_mm256_load_ps(even[r] + 8 * h), acc[r][h]);
        _mm256_storeu_ps(to, _mm256_add_ps(zero ? _mm256_setzero_ps() : _mm256_loadu_ps(to), sum));
      }
    }
  }
}

void f32_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  constexpr decltype(&f32_tile<1>) kTiles[] = {f32_tile<1>, f32_tile<2>, f32_tile<3>,
                                               f32_tile<4>, f32_tile<5>, f32_tile<6>};
  kTiles[rows - 1](k, static_cast<const float*>(a), static_cast<const float*>(b), c, ldc, first);
}

void bf16_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  constexpr decltype(&bf16_tile<1>) kTiles[] = {bf16_tile<1>, bf16_tile<2>, bf16_tile<3>,
                                                bf16_tile<4>, bf16_tile<5>, bf16_tile<6>};
  kTiles[rows - 1](k, static_cast<const float*>(a), static_cast<const uint32_t*>(b), c, ldc, first);
}

}  // namespace

const GemmKernel& gemm_f32_avx2() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         1,
                                         kMr * 4,
                                         kNr * 4,
                                         pack_f32_panel<kMr>,
                                         pack_f32_panel<kNr>,
                                         f32_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_plain<kNr>,
                                         store_bf16_plain<kNr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         256,
                                         192};
  return kKernel;
}

const GemmKernel& gemm_bf16_avx2() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         kGroup,
                                         kMr * 4,
                                         kNr * 2,
                                         pack_groups<kGroup * kMr, pack_group_expanded<kMr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_pairs<kNr>>,
                                         bf16_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_plain<kNr>,
                                         store_bf16_plain<kNr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         256,
                                         192};
  return kKernel;
}

}  // namespace ostro::cpu
