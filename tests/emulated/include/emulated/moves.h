// AVX-512 moves: loads, stores and shuffles of F, BW, DQ and VL, as far as the kernels use them.
#pragma once

#include "emulated/vector.h"

// Loads, stores.
OSTRO_EMULATED __m512 _mm512_loadu_ps(const void* p) {
  const float* from = static_cast<const float*>(p);
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
OSTRO_EMULATED __m512i _mm512_loadu_si512(const void* p) {
  const __m256i* from = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}
OSTRO_EMULATED void _mm512_storeu_ps(void* p, __m512 v) {
  float* to = static_cast<float*>(p);
  _mm256_storeu_ps(to, v.low);
  _mm256_storeu_ps(to + 8, v.high);
}
OSTRO_EMULATED void _mm512_storeu_si512(void* p, __m512i v) {
  __m256i* to = static_cast<__m256i*>(p);
  _mm256_storeu_si256(to, v.low);
  _mm256_storeu_si256(to + 1, v.high);
}
OSTRO_EMULATED __m512 _mm512_load_ps(const void* p) {
  ostro::emulated::require_aligned(p);
  return _mm512_loadu_ps(p);
}
OSTRO_EMULATED __m512i _mm512_load_si512(const void* p) {
  ostro::emulated::require_aligned(p);
  return _mm512_loadu_si512(p);
}
OSTRO_EMULATED void _mm512_store_si512(void* p, __m512i v) {
  ostro::emulated::require_aligned(p);
  _mm512_storeu_si512(p, v);
}
OSTRO_EMULATED void _mm512_stream_ps(void* p, __m512 v) {
  ostro::emulated::require_aligned(p);
  _mm512_storeu_ps(p, v);
}
OSTRO_EMULATED void _mm512_stream_si512(void* p, __m512i v) {
  ostro::emulated::require_aligned(p);
  _mm512_storeu_si512(p, v);
}
OSTRO_EMULATED __m512 _mm512_maskz_loadu_ps(__mmask16 m, const void* p) {
  return ostro::emulated::load_masked<__m512, float>(m, p);
}
OSTRO_EMULATED __m512i _mm512_maskz_loadu_epi32(__mmask16 m, const void* p) {
  return ostro::emulated::load_masked<__m512i, int32_t>(m, p);
}
OSTRO_EMULATED __m512i _mm512_maskz_loadu_epi16(__mmask32 m, const void* p) {
  return ostro::emulated::load_masked<__m512i, int16_t>(m, p);
}
OSTRO_EMULATED __m512i _mm512_maskz_loadu_epi8(__mmask64 m, const void* p) {
  return ostro::emulated::load_masked<__m512i, int8_t>(m, p);
}
OSTRO_EMULATED __m256i _mm256_maskz_loadu_epi16(__mmask16 m, const void* p) {
  return ostro::emulated::load_masked<__m256i, int16_t>(m, p);
}
OSTRO_EMULATED void _mm512_mask_storeu_ps(void* p, __mmask16 m, __m512 v) {
  ostro::emulated::store_masked<float>(p, m, v);
}
OSTRO_EMULATED void _mm512_mask_storeu_epi32(void* p, __mmask16 m, __m512i v) {
  ostro::emulated::store_masked<int32_t>(p, m, v);
}
OSTRO_EMULATED void _mm256_mask_storeu_epi16(void* p, __mmask16 m, __m256i v) {
  ostro::emulated::store_masked<int16_t>(p, m, v);
}

// One value in every lane.
OSTRO_EMULATED __m512 _mm512_setzero_ps() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
OSTRO_EMULATED __m512i _mm512_setzero_si512() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
OSTRO_EMULATED __m512 _mm512_set1_ps(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
OSTRO_EMULATED __m512i _mm512_set1_epi64(long long x) {
  return {_mm256_set1_epi64x(x), _mm256_set1_epi64x(x)};
}
OSTRO_EMULATED __m512i _mm512_set1_epi32(int x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
OSTRO_EMULATED __m512i _mm512_set1_epi16(short x) { return {_mm256_set1_epi16(x), _mm256_set1_epi16(x)}; }
OSTRO_EMULATED __m512i _mm512_set_epi64(long long h, long long g, long long f, long long e, long long d,
                                        long long c, long long b, long long a) {
  return {_mm256_set_epi64x(d, c, b, a), _mm256_set_epi64x(h, g, f, e)};
}
OSTRO_EMULATED __m512i _mm512_broadcast_i32x4(__m128i v) {
  return {_mm256_broadcastsi128_si256(v), _mm256_broadcastsi128_si256(v)};
}

// Lanes in another order.
OSTRO_EMULATED __m256i _mm512_castsi512_si256(__m512i a) { return a.low; }
OSTRO_EMULATED __m256i _mm512_extracti64x4_epi64(__m512i a, int half) { return half == 0 ? a.low : a.high; }
// Two parts of 128 bits of a, then two of b.
OSTRO_EMULATED __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, int imm) {
  const auto x = ostro::emulated::lanes_of<__m128i>(a), y = ostro::emulated::lanes_of<__m128i>(b);
  return ostro::emulated::make<__m512i, __m128i>(
      [&](size_t i) { return (i < 2 ? x : y)[static_cast<size_t>(imm >> 2 * i & 3)]; });
}
OSTRO_EMULATED __m512i _mm512_unpacklo_epi16(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_unpacklo_epi16(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m512i _mm512_unpackhi_epi16(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_unpackhi_epi16(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_unpacklo_epi32(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_unpackhi_epi32(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_unpacklo_epi64(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_unpackhi_epi64(x, y); }, a,
                                          b);
}
OSTRO_EMULATED __m256i _mm256_permutexvar_epi16(__m256i index, __m256i a) {
  const auto x = ostro::emulated::lanes_of<uint16_t>(a), at = ostro::emulated::lanes_of<uint16_t>(index);
  return ostro::emulated::make<__m256i, uint16_t>([&](size_t i) { return x[at[i] & 15]; });
}
OSTRO_EMULATED __m512i _mm512_permutexvar_epi16(__m512i index, __m512i a) {
  const auto x = ostro::emulated::lanes_of<uint16_t>(a), at = ostro::emulated::lanes_of<uint16_t>(index);
  return ostro::emulated::make<__m512i, uint16_t>([&](size_t i) { return x[at[i] & 31]; });
}
OSTRO_EMULATED __m512i _mm512_permutex2var_epi16(__m512i a, __m512i index, __m512i b) {
  const auto x = ostro::emulated::lanes_of<uint16_t>(a), y = ostro::emulated::lanes_of<uint16_t>(b);
  const auto at = ostro::emulated::lanes_of<uint16_t>(index);
  return ostro::emulated::make<__m512i, uint16_t>([&](size_t i) { return (at[i] & 32 ? y : x)[at[i] & 31]; });
}
// Bytes of the same 128 bits; zero where the index's top bit is set.
OSTRO_EMULATED __m512i _mm512_shuffle_epi8(__m512i a, __m512i index) {
  return ostro::emulated::halves<__m512i>([](__m256i x, __m256i y) { return _mm256_shuffle_epi8(x, y); }, a,
                                          index);
}
