// Products of int8 numbers with scales on AVX-VNNI: 6 x 16 outputs.
#include <immintrin.h>

#include "ostro/products/kernels/dot8_tile.inc.h"

namespace ostro::kernels {
namespace {

struct Vnni256 {
  static constexpr int kWidth = 8, kNumbers = 4;
  static constexpr bool kOffset = true;
  using Int = __m256i;
  using Right = Int;
  using Float = __m256;

  static Int load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static Float load_float(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
  static Int set_int(const void* p) {
    int32_t x;
    __builtin_memcpy(&x, p, 4);
    Int v = _mm256_set1_epi32(x);
    __asm__("" : "+x"(v));  // else each use loads it again
    return v;
  }
  static Float set_float(const void* p) {
    float x;
    __builtin_memcpy(&x, p, 4);
    return _mm256_set1_ps(x);
  }
  // gcc 12 keeps sums that pass through the intrinsic in memory as well.
  static void dot(Int& sum, Int bytes, Int signed_bytes) {
#ifdef __AVXVNNI__
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(bytes), "x"(signed_bytes));
#else  // emulated (tests/emulated)
    sum = _mm256_dpbusd_avx_epi32(sum, bytes, signed_bytes);
#endif
  }
  static Float scaled(Int sum, Float scale) { return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale); }
  static Float fma(Float x, Float y, Float z) { return _mm256_fmadd_ps(x, y, z); }
  static Float zero() { return _mm256_setzero_ps(); }
  static void store(float* p, Float x) { _mm256_storeu_ps(p, x); }
};

}  // namespace

const DotInt8Kernel& dot8_vnni256() {
  static constexpr DotInt8Kernel kKernel = WordTile<Vnni256, 6, 2>::kernel("vnni256", gemm_bf16_avx2);
  return kKernel;
}

}  // namespace ostro::kernels
