// AVX-512 arithmetic: numbers, bits and masks of F, BW, DQ and VL, as far as the kernels use them.
// Floating-point lanes follow MXCSR as the processor's do, as the processor's own instructions on smaller
// vectors compute them.
#pragma once

#include <cmath>
#include <limits>

#include "emulated/moves.h"

// Floating point.
OSTRO_EMULATED __m512 _mm512_add_ps(__m512 a, __m512 b) {
  return ostro::emulated::halves<__m512>([](__m256 x, __m256 y) { return _mm256_add_ps(x, y); }, a, b);
}
OSTRO_EMULATED __m512 _mm512_sub_ps(__m512 a, __m512 b) {
  return ostro::emulated::halves<__m512>([](__m256 x, __m256 y) { return _mm256_sub_ps(x, y); }, a, b);
}
OSTRO_EMULATED __m512 _mm512_mul_ps(__m512 a, __m512 b) {
  return ostro::emulated::halves<__m512>([](__m256 x, __m256 y) { return _mm256_mul_ps(x, y); }, a, b);
}
OSTRO_EMULATED __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  return ostro::emulated::halves<__m512>(
      [](__m256 x, __m256 y, __m256 z) { return _mm256_fmadd_ps(x, y, z); }, a, b, c);
}
OSTRO_EMULATED __m512 _mm512_fmsub_ps(__m512 a, __m512 b, __m512 c) {
  return ostro::emulated::halves<__m512>(
      [](__m256 x, __m256 y, __m256 z) { return _mm256_fmsub_ps(x, y, z); }, a, b, c);
}
// The second operand where both are zeros or one is no number.
OSTRO_EMULATED __m512 _mm512_max_ps(__m512 a, __m512 b) {
  return ostro::emulated::halves<__m512>([](__m256 x, __m256 y) { return _mm256_max_ps(x, y); }, a, b);
}
OSTRO_EMULATED __m512 _mm512_roundscale_ps(__m512 a, int imm) {
  ostro::emulated::require(imm == _MM_FROUND_TO_NEAREST_INT, "VRNDSCALEPS of another kind");
  return ostro::emulated::halves<__m512>(
      [](__m256 x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT); }, a);
}
// a 2^floor(b). Exact in double but for the last rounding, which flushes as MXCSR says.
OSTRO_EMULATED __m512 _mm512_scalef_ps(__m512 a, __m512 b) {
  const auto x = ostro::emulated::lanes_of<float>(a), power = ostro::emulated::lanes_of<float>(b);
  return ostro::emulated::make<__m512, float>([&](size_t i) {
    const float n = power[i];
    if (std::isinf(n)) {  // also where a is a quiet NaN
      const bool undefined = n > 0 ? x[i] == 0.0f : std::isinf(x[i]);
      if (undefined) return std::numeric_limits<float>::quiet_NaN();
      return std::copysign(n > 0 ? n : 0.0f, std::isnan(x[i]) ? 1.0f : x[i]);
    }
    if (std::isnan(x[i]) || std::isnan(n)) return x[i] + n;
    const float clamped = n > 400.0f ? 400.0f : n < -400.0f ? -400.0f : n;
    return static_cast<float>(std::ldexp(static_cast<double>(x[i]), static_cast<int>(std::floor(clamped))));
  });
}

// Bits and integers.
OSTRO_EMULATED __m512 _mm512_castsi512_ps(__m512i a) {
  return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)};
}
OSTRO_EMULATED __m512i _mm512_castps_si512(__m512 a) {
  return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)};
}
OSTRO_EMULATED __m512i _mm512_and_si512(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_and_si256(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_or_si512(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_or_si256(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_xor_si512(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_xor_si256(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_add_epi16(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_add_epi16(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_add_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_add_epi32(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_sub_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_sub_epi32(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_add_epi64(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_add_epi64(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_mullo_epi64(__m512i a, __m512i b) {
  const auto x = ostro::emulated::lanes_of<uint64_t>(a), y = ostro::emulated::lanes_of<uint64_t>(b);
  return ostro::emulated::make<__m512i, uint64_t>([&](size_t i) { return x[i] * y[i]; });
}
OSTRO_EMULATED __m512i _mm512_slli_epi32(__m512i a, unsigned n) {
  return ostro::emulated::halves<__m512i>(
      [n](__m256i x) { return _mm256_slli_epi32(x, static_cast<int>(n)); }, a);
}
OSTRO_EMULATED __m512i _mm512_srli_epi32(__m512i a, unsigned n) {
  return ostro::emulated::halves<__m512i>(
      [n](__m256i x) { return _mm256_srli_epi32(x, static_cast<int>(n)); }, a);
}
OSTRO_EMULATED __m512i _mm512_srli_epi64(__m512i a, unsigned n) {
  return ostro::emulated::halves<__m512i>(
      [n](__m256i x) { return _mm256_srli_epi64(x, static_cast<int>(n)); }, a);
}
OSTRO_EMULATED __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
          _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))};
}
OSTRO_EMULATED __m512i _mm512_cvtepi16_epi32(__m256i a) {
  return {_mm256_cvtepi16_epi32(_mm256_castsi256_si128(a)),
          _mm256_cvtepi16_epi32(_mm256_extracti128_si256(a, 1))};
}
OSTRO_EMULATED __m512i _mm512_max_epi16(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_max_epi16(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_max_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_max_epi32(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_min_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_min_epi32(x, y); }, a, b);
}
OSTRO_EMULATED __m512i _mm512_abs_epi32(__m512i a) {
  return ostro::emulated::halves<__m512i>([](__m256i x) { return _mm256_abs_epi32(x); }, a);
}
OSTRO_EMULATED __m512i _mm512_cvtepi8_epi32(__m128i a) {
  return {_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8))};
}
OSTRO_EMULATED __m512 _mm512_cvtepi32_ps(__m512i a) {
  return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
}
OSTRO_EMULATED __m512i _mm512_rol_epi32(__m512i a, int n) {
  const auto x = ostro::emulated::lanes_of<uint32_t>(a);
  return ostro::emulated::make<__m512i, uint32_t>([&](size_t i) { return std::rotl(x[i], n); });
}
OSTRO_EMULATED __m512i _mm512_max_epu32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_max_epu32(x, y); }, a, b);
}
OSTRO_EMULATED unsigned _mm512_reduce_max_epu32(__m512i a) {
  unsigned largest = 0;
  for (const uint32_t x : ostro::emulated::lanes_of<uint32_t>(a)) largest = x > largest ? x : largest;
  return largest;
}
// Two parts of 128 bits at a time, saturated.
OSTRO_EMULATED __m512i _mm512_packs_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_packs_epi32(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m512i _mm512_packs_epi16(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_packs_epi16(x, y); }, a,
                                          b);
}
// Rounded as MXCSR says.
OSTRO_EMULATED __m512i _mm512_cvtps_epi32(__m512 a) {
  return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)};
}
OSTRO_EMULATED __m512i _mm512_cvttps_epi32(__m512 a) {
  return {_mm256_cvttps_epi32(a.low), _mm256_cvttps_epi32(a.high)};
}
OSTRO_EMULATED __m512i _mm512_cvt_roundps_epi32(__m512 a, int imm) {
  ostro::emulated::require(imm == (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC), "VCVTPS2DQ of another kind");
  return {_mm256_cvtps_epi32(_mm256_floor_ps(a.low)), _mm256_cvtps_epi32(_mm256_floor_ps(a.high))};
}
OSTRO_EMULATED __m128i _mm512_cvtepi32_epi8(__m512i a) {
  const auto x = ostro::emulated::lanes_of<uint32_t>(a);
  return ostro::emulated::make<__m128i, uint8_t>([&](size_t i) { return x[i]; });
}
OSTRO_EMULATED __m256i _mm512_cvtepi32_epi16(__m512i a) {
  const auto x = ostro::emulated::lanes_of<uint32_t>(a);
  return ostro::emulated::make<__m256i, uint16_t>([&](size_t i) { return x[i]; });
}

// Masks.
OSTRO_EMULATED __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int kind) {
  const auto x = ostro::emulated::lanes_of<float>(a), y = ostro::emulated::lanes_of<float>(b);
  unsigned mask = 0;
  for (size_t i = 0; i < 16; ++i) {
    bool holds = false;
    switch (kind) {
      case _CMP_NLT_UQ: holds = !(x[i] < y[i]); break;
      case _CMP_NEQ_UQ: holds = x[i] != y[i]; break;
      case _CMP_UNORD_Q: holds = std::isnan(x[i]) || std::isnan(y[i]); break;
      default: ostro::emulated::require(false, "VCMPPS of another kind");
    }
    mask |= static_cast<unsigned>(holds) << i;
  }
  return static_cast<__mmask16>(mask);
}
OSTRO_EMULATED __mmask16 _mm512_cmpeq_epi32_mask(__m512i a, __m512i b) {
  const auto x = ostro::emulated::lanes_of<int32_t>(a), y = ostro::emulated::lanes_of<int32_t>(b);
  unsigned mask = 0;
  for (size_t i = 0; i < 16; ++i) mask |= static_cast<unsigned>(x[i] == y[i]) << i;
  return static_cast<__mmask16>(mask);
}
OSTRO_EMULATED __mmask16 _mm512_cmpgt_epi32_mask(__m512i a, __m512i b) {
  const auto x = ostro::emulated::lanes_of<int32_t>(a), y = ostro::emulated::lanes_of<int32_t>(b);
  unsigned mask = 0;
  for (size_t i = 0; i < 16; ++i) mask |= static_cast<unsigned>(x[i] > y[i]) << i;
  return static_cast<__mmask16>(mask);
}
OSTRO_EMULATED __mmask16 _mm512_cmplt_epu32_mask(__m512i a, __m512i b) {
  const auto x = ostro::emulated::lanes_of<uint32_t>(a), y = ostro::emulated::lanes_of<uint32_t>(b);
  unsigned mask = 0;
  for (size_t i = 0; i < 16; ++i) mask |= static_cast<unsigned>(x[i] < y[i]) << i;
  return static_cast<__mmask16>(mask);
}
OSTRO_EMULATED __m512 _mm512_mask_mov_ps(__m512 from, __mmask16 m, __m512 a) {
  const auto x = ostro::emulated::lanes_of<float>(a), y = ostro::emulated::lanes_of<float>(from);
  return ostro::emulated::make<__m512, float>(
      [&](size_t i) { return ostro::emulated::bit(m, i) ? x[i] : y[i]; });
}
OSTRO_EMULATED __m512 _mm512_maskz_mov_ps(__mmask16 m, __m512 a) {
  return _mm512_mask_mov_ps(_mm512_setzero_ps(), m, a);
}
OSTRO_EMULATED __m512 _mm512_maskz_mul_ps(__mmask16 m, __m512 a, __m512 b) {
  return _mm512_maskz_mov_ps(m, _mm512_mul_ps(a, b));
}
OSTRO_EMULATED __m512 _mm512_mask_max_ps(__m512 from, __mmask16 m, __m512 a, __m512 b) {
  return _mm512_mask_mov_ps(from, m, _mm512_max_ps(a, b));
}
OSTRO_EMULATED __m512 _mm512_maskz_fmadd_ps(__mmask16 m, __m512 a, __m512 b, __m512 c) {
  return _mm512_maskz_mov_ps(m, _mm512_fmadd_ps(a, b, c));
}
OSTRO_EMULATED __m512i _mm512_mask_add_epi32(__m512i from, __mmask16 m, __m512i a, __m512i b) {
  return _mm512_castps_si512(
      _mm512_mask_mov_ps(_mm512_castsi512_ps(from), m, _mm512_castsi512_ps(_mm512_add_epi32(a, b))));
}
OSTRO_EMULATED __m512i _mm512_mask_or_epi32(__m512i from, __mmask16 m, __m512i a, __m512i b) {
  return _mm512_castps_si512(
      _mm512_mask_mov_ps(_mm512_castsi512_ps(from), m, _mm512_castsi512_ps(_mm512_or_si512(a, b))));
}

// AVX-VNNI, AVX-512 VNNI. Each sum and four products of an unsigned and a signed byte, modulo 2^32.
OSTRO_EMULATED __m256i _mm256_dpbusd_avx_epi32(__m256i sum, __m256i a, __m256i b) {
  const auto start = ostro::emulated::lanes_of<uint32_t>(sum);
  const auto x = ostro::emulated::lanes_of<uint8_t>(a);
  const auto y = ostro::emulated::lanes_of<int8_t>(b);
  return ostro::emulated::make<__m256i, uint32_t>([&](size_t i) {
    int32_t products = 0;
    for (size_t j = 4 * i; j < 4 * i + 4; ++j) products += x[j] * y[j];
    return start[i] + static_cast<uint32_t>(products);
  });
}
OSTRO_EMULATED __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>(
      [](__m256i s, __m256i x, __m256i y) { return _mm256_dpbusd_avx_epi32(s, x, y); }, sum, a, b);
}
