// AVX512-BF16: conversions and products, rounded to the nearest, ties to even; denormals are read and written
// as zero, whatever MXCSR says.
#pragma once

#include "emulated/arithmetic.h"

namespace ostro::emulated {

// The processor's own instruction below follows MXCSR, which VDPBF16PS and TDPBF16PS do not: it has to be
// what they assume (nearest, DAZ and FTZ), as it is in every thread that computes (N0).
inline void require_environment() {
  require((_mm_getcsr() & 0xffc0) == 0x9fc0,
          "cannot multiply bf16 in another floating-point environment than N0's");
}

inline uint16_t rounded_bf16(float f) {
  const uint32_t x = std::bit_cast<uint32_t>(f);
  const uint32_t exponent = x >> 23 & 0xff, mantissa = x & 0x7fffff;
  if (exponent == 0) return static_cast<uint16_t>(x >> 16 & 0x8000);
  if (exponent == 0xff && mantissa != 0) return static_cast<uint16_t>(x >> 16 | 0x40);
  return static_cast<uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
}

inline float low_bf16(uint32_t word) { return std::bit_cast<float>(word << 16); }
inline float high_bf16(uint32_t word) { return std::bit_cast<float>(word & 0xffff0000u); }

}  // namespace ostro::emulated

// Both products are fused with the addition: the upper half of a word first, then the lower.
OSTRO_EMULATED __m512 _mm512_dpbf16_ps(__m512 c, __m512bh a, __m512bh b) {
  ostro::emulated::require_environment();
  const __m512i x = __builtin_bit_cast(__m512i, a), y = __builtin_bit_cast(__m512i, b);
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512 first = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, high)),
                                       _mm512_castsi512_ps(_mm512_and_si512(y, high)), c);
  return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                         _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)), first);
}

OSTRO_EMULATED __m256bh _mm512_cvtneps_pbh(__m512 a) {
  const auto x = ostro::emulated::lanes_of<float>(a);
  return ostro::emulated::make<__m256bh, uint16_t>(
      [&](size_t i) { return ostro::emulated::rounded_bf16(x[i]); });
}

// b below, a above.
OSTRO_EMULATED __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b) {
  const auto x = ostro::emulated::lanes_of<float>(a), y = ostro::emulated::lanes_of<float>(b);
  return ostro::emulated::make<__m512bh, uint16_t>(
      [&](size_t i) { return ostro::emulated::rounded_bf16(i < 16 ? y[i] : x[i - 16]); });
}
