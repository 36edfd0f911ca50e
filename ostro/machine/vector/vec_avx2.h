// VecAvx2: eight f32 lanes in an AVX2 register, with the operations that kernels over a vector type use.
// Included only by *_avx2.cc.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace ostro::machine {

struct VecAvx2 {
  static constexpr int kWidth = 8;
  // Register tile of a product: rows times vectors of accumulators that fit 16 registers.
  static constexpr int kRowsF32 = 6, kVectorsF32 = 2;
  static constexpr int kRowsBf16 = 3, kVectorsBf16 = 2;
  using Mask = __m256;

  __m256 v;

  static VecAvx2 load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static VecAvx2 set1(float x) { return {_mm256_set1_ps(x)}; }
  static VecAvx2 zero() { return {_mm256_setzero_ps()}; }
  // Keeps x in a register. Otherwise compilers repeat its load at every use, and the loads limit the loop's
  // speed.
  static void keep(VecAvx2& x) { __asm__("" : "+x"(x.v)); }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  friend VecAvx2 operator+(VecAvx2 a, VecAvx2 b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend VecAvx2 operator-(VecAvx2 a, VecAvx2 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend VecAvx2 operator*(VecAvx2 a, VecAvx2 b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static VecAvx2 fma(VecAvx2 a, VecAvx2 b, VecAvx2 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static VecAvx2 max(VecAvx2 a, VecAvx2 b) { return {_mm256_max_ps(a.v, b.v)}; }
  static VecAvx2 rint(VecAvx2 a) {
    return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  // p * 2^n for integral n in [-126, 127]; NaN stays NaN because the factor multiplies.
  static VecAvx2 scale_by_power(VecAvx2 p, VecAvx2 n) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n.v), 23);
    return {
        _mm256_mul_ps(p.v, _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000))))};
  }
  static VecAvx2 zero_where_less(VecAvx2 a, VecAvx2 b, VecAvx2 x) {
    return {_mm256_and_ps(_mm256_cmp_ps(a.v, b.v, _CMP_NLT_UQ), x.v)};
  }

  static Mask mask(uint32_t bits) {
    const __m256i lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lanes);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lanes));
  }
  static VecAvx2 select(Mask m, VecAvx2 a, VecAvx2 b) { return {_mm256_blendv_ps(b.v, a.v, m)}; }
  static uint32_t equal_bits(const int32_t* p, int32_t x) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(values, _mm256_set1_epi32(x)))));
  }

  static bool all_one(VecAvx2 a) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a.v, _mm256_set1_ps(1.0f), _CMP_NEQ_UQ)) == 0;
  }

  static VecAvx2 load_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
  }
  // a * b - c, rounded once.
  static VecAvx2 fma_less(VecAvx2 a, VecAvx2 b, VecAvx2 c) { return {_mm256_fmsub_ps(a.v, b.v, c.v)}; }
  static VecAvx2 load_bf16(const uint16_t* p) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16))};
  }
  static __m256i bf16_bits(VecAvx2 a) {
    const __m256i x = _mm256_castps_si256(a.v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(x, _mm256_set1_epi32(0x00400000));
    const __m256 nan = _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q);
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan));
  }
  static VecAvx2 round_bf16(VecAvx2 a) {
    return {_mm256_castsi256_ps(
        _mm256_and_si256(bf16_bits(a), _mm256_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
  // out[j][i] = in[i][j] of kWidth x kWidth, row strides in floats.
  static void transpose(const float* in, int64_t ld_in, float* out, int64_t ld_out) {
    __m256 r[8], t[8];
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(in + i * ld_in);
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
      t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
      r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
      r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
      r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
      r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_ps(out + i * ld_out, _mm256_permute2f128_ps(r[i], r[4 + i], 0x20));
      _mm256_storeu_ps(out + (4 + i) * ld_out, _mm256_permute2f128_ps(r[i], r[4 + i], 0x31));
    }
  }
  void store_bf16(uint16_t* p) const {
    const __m256i high = _mm256_srli_epi32(bf16_bits(*this), 16);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
  }
};

}  // namespace ostro::machine
