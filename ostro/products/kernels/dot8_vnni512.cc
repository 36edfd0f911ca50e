// Products of int8 numbers with scales on AVX-512 VNNI: 12 x 32 outputs.
#include <immintrin.h>

#include "ostro/products/kernels/dot8_tile.inc.h"

namespace ostro::kernels {
namespace {

struct Vnni512 {
  static constexpr int kWidth = 16, kNumbers = 4;
  static constexpr bool kOffset = true;
  using Int = __m512i;
  using Right = Int;
  using Float = __m512;

  static Int load(const void* p) { return _mm512_loadu_si512(p); }
  static Float load_float(const void* p) { return _mm512_loadu_ps(p); }
  static Int set_int(const void* p) {
    int32_t x;
    __builtin_memcpy(&x, p, 4);
    Int v = _mm512_set1_epi32(x);
#ifdef __AVX512F__
    __asm__("" : "+v"(v));  // else each use loads it again
#endif
    return v;
  }
  static Float set_float(const void* p) {
    float x;
    __builtin_memcpy(&x, p, 4);
    return _mm512_set1_ps(x);
  }
  // gcc 12 keeps sums that pass through the intrinsic in memory as well.
  static void dot(Int& sum, Int bytes, Int signed_bytes) {
#ifdef __AVX512VNNI__
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(signed_bytes));
#else  // emulated (tests/emulated)
    sum = _mm512_dpbusd_epi32(sum, bytes, signed_bytes);
#endif
  }
  static Float scaled(Int sum, Float scale) { return _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale); }
  static Float fma(Float x, Float y, Float z) { return _mm512_fmadd_ps(x, y, z); }
  static Float zero() { return _mm512_setzero_ps(); }
  static void store(float* p, Float x) { _mm512_storeu_ps(p, x); }
};

}  // namespace

const DotInt8Kernel& dot8_vnni512() {
  static constexpr DotInt8Kernel kKernel = WordTile<Vnni512, 12, 2>::kernel("vnni512", gemm_bf16_avx512);
  return kKernel;
}

}  // namespace ostro::kernels
