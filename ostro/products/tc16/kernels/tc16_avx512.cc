// Products by the rule of tensor cores (docs/spec/numerics.md, N23) on AVX-512: tiles of 4 x 32.

// gcc 12 takes the undefined source of an unmasked intrinsic for a variable without a value.
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "ostro/products/tc16/kernels/tc16_tile.inc.h"

namespace ostro::kernels {
namespace {

struct Tc16Avx512 {
  static constexpr int kLanes = 16, kTogether = 4;
  using Int = __m512i;
  using Short = __m512i;
  using Float = __m512;

  static Short load_short(const void* p) { return _mm512_loadu_si512(p); }
  static Short set_short(int x) { return _mm512_set1_epi16(static_cast<short>(x)); }
  static Short set_short_at(const void* p) {
    short x;
    __builtin_memcpy(&x, p, 2);
    return _mm512_set1_epi16(x);
  }
  static Short add_short(Short x, Short y) { return _mm512_add_epi16(x, y); }
  static Short max_short(Short x, Short y) { return _mm512_max_epi16(x, y); }
  static Int widen(Short x, int half) {
    return _mm512_cvtepi16_epi32(half == 0 ? _mm512_castsi512_si256(x) : _mm512_extracti64x4_epi64(x, 1));
  }

  static Int load_int(const void* p) { return _mm512_loadu_si512(p); }
  static Int set_int(int x) { return _mm512_set1_epi32(x); }
  static Int add(Int x, Int y) { return _mm512_add_epi32(x, y); }
  static Int subtract(Int x, Int y) { return _mm512_sub_epi32(x, y); }
  static Int max(Int x, Int y) { return _mm512_max_epi32(x, y); }
  static Int min(Int x, Int y) { return _mm512_min_epi32(x, y); }
  static Int magnitude(Int x) { return _mm512_abs_epi32(x); }
  template <int N>
  static Int left(Int x) {
    return _mm512_slli_epi32(x, N);
  }
  template <int N>
  static Int right(Int x) {
    return _mm512_srli_epi32(x, N);
  }
  // x, and `more` in addition where y is 0.
  static Int add_where_zero(Int x, Int y, int more) {
    return _mm512_mask_add_epi32(x, _mm512_cmpeq_epi32_mask(y, _mm512_setzero_si512()), x,
                                 _mm512_set1_epi32(more));
  }
  // Of the lanes for which it holds.
  static unsigned greater(Int x, Int y) { return _mm512_cmpgt_epi32_mask(x, y); }
  static unsigned equal(Int x, Int y) { return _mm512_cmpeq_epi32_mask(x, y); }

  static Float load(const void* p) { return _mm512_loadu_ps(p); }
  static Float set_at(const void* p) {
    float x;
    __builtin_memcpy(&x, p, 4);
    return _mm512_set1_ps(x);
  }
  static void store(float* p, Float x) { _mm512_storeu_ps(p, x); }
  static Float multiply(Float x, Float y) { return _mm512_mul_ps(x, y); }
  static Int bits_of(Float x) { return _mm512_castps_si512(x); }
  static Float of_bits(Int x) { return _mm512_castsi512_ps(x); }
  static Int cut(Int bits) { return _mm512_cvttps_epi32(_mm512_castsi512_ps(bits)); }
  static Int cut_of(Float x) { return _mm512_cvttps_epi32(x); }
  static Float to_float(Int x) { return _mm512_cvtepi32_ps(x); }  // as MXCSR says
};

}  // namespace

const GemmKernel& gemm_tc16_avx512() {
  static constexpr GemmKernel kKernel = Tc16Tile<Tc16Avx512>::kernel();
  return kKernel;
}

}  // namespace ostro::kernels
