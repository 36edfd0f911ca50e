// bf16 tiles on VDPBF16PS, 6 x 32. The instruction adds its high product first and chains both on one
// accumulator; the chains layout feeds it so that this is N7's even chain, and its odd one.
#include "ostro/products/kernels/gemm_pack_avx512.inc.h"
#include "ostro/products/kernels/gemm_store_avx512bf16.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kMr = 6, kNr = 32;

inline __m512bh words(__m512i x) { return __builtin_bit_cast(__m512bh, x); }

// Per group of 32 k: eight instructions on the even chain, eight on the odd one, then C plus their sum (N7).
template <int R>
void bf16_tile(int64_t k, const uint32_t* a, const uint32_t* b, float* c, int64_t ldc, bool first) {
  for (int64_t k0 = 0; k0 < k; k0 += kGroup, a += 16 * kMr, b += 16 * kNr) {
    __m512 e[R][2], o[R][2];
    for (int r = 0; r < R; ++r) e[r][0] = e[r][1] = o[r][0] = o[r][1] = _mm512_setzero_ps();
    for (int q = 0; q < 8; ++q) {
      const uint32_t* even = b + q * kNr;
      const uint32_t* odd = even + 8 * kNr;
      const __m512bh e0 = words(_mm512_load_si512(even)), e1 = words(_mm512_load_si512(even + 16));
      const __m512bh o0 = words(_mm512_load_si512(odd)), o1 = words(_mm512_load_si512(odd + 16));
      for (int r = 0; r < R; ++r) {
        const __m512bh x = words(_mm512_set1_epi32(static_cast<int>(a[q * kMr + r])));
        const __m512bh y = words(_mm512_set1_epi32(static_cast<int>(a[(8 + q) * kMr + r])));
        e[r][0] = _mm512_dpbf16_ps(e[r][0], x, e0);
        e[r][1] = _mm512_dpbf16_ps(e[r][1], x, e1);
        o[r][0] = _mm512_dpbf16_ps(o[r][0], y, o0);
        o[r][1] = _mm512_dpbf16_ps(o[r][1], y, o1);
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

void bf16_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  constexpr decltype(&bf16_tile<1>) kTiles[] = {bf16_tile<1>, bf16_tile<2>, bf16_tile<3>,
                                                bf16_tile<4>, bf16_tile<5>, bf16_tile<6>};
  kTiles[rows - 1](k, static_cast<const uint32_t*>(a), static_cast<const uint32_t*>(b), c, ldc, first);
}

}  // namespace

const GemmKernel& gemm_bf16_avx512bf16() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         kGroup,
                                         kMr * 2,
                                         kNr * 2,
                                         pack_groups<kGroup / 2 * kMr, pack_group_chains_avx512<kMr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_chains_avx512<kNr>>,
                                         bf16_multiply,
                                         1,
                                         machine::round_row_avx512bf16,
                                         store_f32_avx512,
                                         store_bf16_avx512,
                                         nullptr,
                                         nullptr,
                                         256,
                                         192};
  return kKernel;
}

}  // namespace ostro::kernels
