// Matrix product tiles for AVX-512: f32 12 x 32; bf16 emulated 6 x 32 with the even and odd chains side by
// side (24 accumulators each).
#include "ostro/products/kernels/gemm_pack_avx512.inc.h"
#include "ostro/products/kernels/gemm_store_avx512.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kMr = 12, kBf16Mr = 6, kNr = 32;

template <int R>
void f32_tile(int64_t k, const float* a, const float* b, float* c, int64_t ldc, bool first) {
  __m512 acc[R][2];
  for (int r = 0; r < R; ++r) {
    acc[r][0] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c + r * ldc);
    acc[r][1] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(c + r * ldc + 16);
  }
  for (int64_t i = 0; i < k; ++i, a += kMr, b += kNr) {
    const __m512 b0 = _mm512_load_ps(b), b1 = _mm512_load_ps(b + 16);
    for (int r = 0; r < R; ++r) {
      const __m512 x = _mm512_set1_ps(a[r]);
      acc[r][0] = _mm512_fmadd_ps(x, b0, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(x, b1, acc[r][1]);
    }
  }
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_ps(c + r * ldc, acc[r][0]);
    _mm512_storeu_ps(c + r * ldc + 16, acc[r][1]);
  }
}

// Per group of 32 k: the even chain from the low halves of B's words, the odd one from the high halves, then
// C plus their sum (N7).
template <int R>
void bf16_tile(int64_t k, const float* a, const uint32_t* b, float* c, int64_t ldc, bool first) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int64_t k0 = 0; k0 < k; k0 += kGroup) {
    __m512 e[R][2], o[R][2];
    for (int r = 0; r < R; ++r) e[r][0] = e[r][1] = o[r][0] = o[r][1] = _mm512_setzero_ps();
    for (int j = 0; j < kGroup / 2; ++j, a += 2 * kBf16Mr, b += kNr) {
      const __m512i w0 = _mm512_load_si512(b), w1 = _mm512_load_si512(b + 16);
      const __m512 e0 = _mm512_castsi512_ps(_mm512_slli_epi32(w0, 16));
      const __m512 e1 = _mm512_castsi512_ps(_mm512_slli_epi32(w1, 16));
      const __m512 o0 = _mm512_castsi512_ps(_mm512_and_si512(w0, high));
      const __m512 o1 = _mm512_castsi512_ps(_mm512_and_si512(w1, high));
      for (int r = 0; r < R; ++r) {
        const __m512 x = _mm512_set1_ps(a[r]), y = _mm512_set1_ps(a[kBf16Mr + r]);
        e[r][0] = _mm512_fmadd_ps(x, e0, e[r][0]);
        e[r][1] = _mm512_fmadd_ps(x, e1, e[r][1]);
        o[r][0] = _mm512_fmadd_ps(y, o0, o[r][0]);
        o[r][1] = _mm512_fmadd_ps(y, o1, o[r][1]);
      }
    }
    const bool zero = first && k0 == 0;
    for (int r = 0; r < R; ++r) {
      for (int h = 0; h < 2; ++h) {
        float* to = c + r * ldc + 16 * h;
        const __m512 before = zero ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
        _mm512_storeu_ps(to, _mm512_add_ps(before, _mm512_add_ps(e[r][h], o[r][h])));
      }
    }
  }
}

void f32_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  constexpr decltype(&f32_tile<1>) kTiles[] = {f32_tile<1>, f32_tile<2>,  f32_tile<3>,  f32_tile<4>,
                                               f32_tile<5>, f32_tile<6>,  f32_tile<7>,  f32_tile<8>,
                                               f32_tile<9>, f32_tile<10>, f32_tile<11>, f32_tile<12>};
  kTiles[rows - 1](k, static_cast<const float*>(a), static_cast<const float*>(b), c, ldc, first);
}

void bf16_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  constexpr decltype(&bf16_tile<1>) kTiles[] = {bf16_tile<1>, bf16_tile<2>, bf16_tile<3>,
                                                bf16_tile<4>, bf16_tile<5>, bf16_tile<6>};
  kTiles[rows - 1](k, static_cast<const float*>(a), static_cast<const uint32_t*>(b), c, ldc, first);
}

}  // namespace

const GemmKernel& gemm_f32_avx512() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         1,
                                         kMr * 4,
                                         kNr * 4,
                                         pack_f32_avx512<kMr>,
                                         pack_f32_avx512<kNr>,
                                         f32_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_avx512,
                                         store_bf16_plain<kNr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         256,
                                         192};
  return kKernel;
}

const GemmKernel& gemm_bf16_avx512() {
  static constexpr GemmKernel kKernel = {kBf16Mr,
                                         kNr,
                                         kGroup,
                                         kBf16Mr * 4,
                                         kNr * 2,
                                         pack_groups<kGroup * kBf16Mr, pack_group_expanded_avx512<kBf16Mr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_pairs_avx512<kNr>>,
                                         bf16_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_avx512,
                                         store_bf16_plain<kNr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         512,
                                         192};
  return kKernel;
}

}  // namespace ostro::kernels
