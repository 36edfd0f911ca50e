// Products by the rule of tensor cores (docs/spec/numerics.md, N23) on AVX2: tiles of 4 x 16, two rows at a
// time.
#include <immintrin.h>

#include "ostro/products/tc16/kernels/tc16_tile.inc.h"

namespace ostro::kernels {
namespace {

struct Tc16Avx2 {
  static constexpr int kLanes = 8, kTogether = 2;
  using Int = __m256i;
  using Short = __m256i;
  using Float = __m256;

  static Short load_short(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static Short set_short(int x) { return _mm256_set1_epi16(static_cast<short>(x)); }
  static Short set_short_at(const void* p) {
    short x;
    __builtin_memcpy(&x, p, 2);
    return _mm256_set1_epi16(x);
  }
  static Short add_short(Short x, Short y) { return _mm256_add_epi16(x, y); }
  static Short max_short(Short x, Short y) { return _mm256_max_epi16(x, y); }
  static Int widen(Short x, int half) {
    return _mm256_cvtepi16_epi32(half == 0 ? _mm256_castsi256_si128(x) : _mm256_extracti128_si256(x, 1));
  }

  static Int load_int(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static Int set_int(int x) { return _mm256_set1_epi32(x); }
  static Int add(Int x, Int y) { return _mm256_add_epi32(x, y); }
  static Int subtract(Int x, Int y) { return _mm256_sub_epi32(x, y); }
  static Int max(Int x, Int y) { return _mm256_max_epi32(x, y); }
  static Int min(Int x, Int y) { return _mm256_min_epi32(x, y); }
  static Int magnitude(Int x) { return _mm256_abs_epi32(x); }
  template <int N>
  static Int left(Int x) {
    return _mm256_slli_epi32(x, N);
  }
  template <int N>
  static Int right(Int x) {
    return _mm256_srli_epi32(x, N);
  }
  // x, and `more` in addition where y is 0.
  static Int add_where_zero(Int x, Int y, int more) {
    const Int zero = _mm256_cmpeq_epi32(y, _mm256_setzero_si256());
    return _mm256_add_epi32(x, _mm256_and_si256(zero, _mm256_set1_epi32(more)));
  }
  // Of the lanes for which it holds.
  static unsigned greater(Int x, Int y) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(x, y))));
  }
  static unsigned equal(Int x, Int y) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x, y))));
  }

  static Float load(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
  static Float set_at(const void* p) { return _mm256_broadcast_ss(static_cast<const float*>(p)); }
  static void store(float* p, Float x) { _mm256_storeu_ps(p, x); }
  static Float multiply(Float x, Float y) { return _mm256_mul_ps(x, y); }
  static Int bits_of(Float x) { return _mm256_castps_si256(x); }
  static Float of_bits(Int x) { return _mm256_castsi256_ps(x); }
  static Int cut(Int bits) { return _mm256_cvttps_epi32(_mm256_castsi256_ps(bits)); }
  static Int cut_of(Float x) { return _mm256_cvttps_epi32(x); }
  static Float to_float(Int x) { return _mm256_cvtepi32_ps(x); }  // as MXCSR says
};

}  // namespace

const GemmKernel& gemm_tc16_avx2() {
  static constexpr GemmKernel kKernel = Tc16Tile<Tc16Avx2>::kernel();
  return kKernel;
}

}  // namespace ostro::kernels
