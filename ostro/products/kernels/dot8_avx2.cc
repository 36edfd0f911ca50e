// Products of int8 numbers with scales on AVX2, in two ways that differ in speed from one processor to the
// other.
#include <immintrin.h>

#include "ostro/products/kernels/dot8_tile.inc.h"

namespace ostro::kernels {
namespace {

struct Avx2Words {
  static constexpr int kWidth = 8, kNumbers = 2;
  static constexpr bool kOffset = false;
  using Int = __m256i;
  using Right = __m256i;
  using Float = __m256;

  static Int load(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
  static Float load_float(const void* p) { return _mm256_load_ps(static_cast<const float*>(p)); }
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
  static void add(Int& sum, Int x) { __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(x)); }
  static void dot(Int& sum, Right right, Int left) { add(sum, _mm256_madd_epi16(right, left)); }
  static Float scaled(Int sum, Float scale) { return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale); }
  static Float fma(Float x, Float y, Float z) { return _mm256_fmadd_ps(x, y, z); }
  static Float zero() { return _mm256_setzero_ps(); }
  static void store(float* p, Float x) { _mm256_store_ps(p, x); }
};

// The sums of two products of VPMADDUBSW are at most 2 * 127 * 127 = 32,258 in magnitude, so they are exact.
struct Avx2Bytes : Avx2Words {
  static constexpr int kNumbers = 4;
  struct Right {
    __m256i value, magnitude;
  };

  static Right load(const void* p) {
    const __m256i value = Avx2Words::load(p);
    return {value, _mm256_abs_epi8(value)};
  }
  static void dot(Int& sum, const Right& right, Int left) {
    const Int pairs = _mm256_maddubs_epi16(right.magnitude, _mm256_sign_epi8(left, right.value));
    add(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

}  // namespace

const DotInt8Kernel& dot8_avx2_words() {
  static constexpr DotInt8Kernel kKernel = WordTile<Avx2Words, 6, 2>::kernel("avx2_words", gemm_bf16_avx2);
  return kKernel;
}

const DotInt8Kernel& dot8_avx2_bytes() {
  static constexpr DotInt8Kernel kKernel = WordTile<Avx2Bytes, 4, 2>::kernel("avx2_bytes", gemm_bf16_avx2);
  return kKernel;
}

}  // namespace ostro::kernels
