// VecAvx512: sixteen f32 lanes in an AVX-512 register, with the operations that kernels over a vector type
// use. Included only by *_avx512.cc and above. Each of these files gets a type of its own, so that no
// template over it is shared between files with different -m flags.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ostro/machine/vector/transpose16_avx512.inc.h"

namespace ostro::machine {
namespace {

struct VecAvx512 {
  static constexpr int kWidth = 16;
  // Register tile of a product: rows times vectors of accumulators that hide the FMA latency.
  static constexpr int kRowsF32 = 6, kVectorsF32 = 4;
  static constexpr int kRowsBf16 = 3, kVectorsBf16 = 4;
  using Mask = __mmask16;

  __m512 v;

  static VecAvx512 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static VecAvx512 set1(float x) { return {_mm512_set1_ps(x)}; }
  static VecAvx512 zero() { return {_mm512_setzero_ps()}; }
  // Keeps x in a register. Otherwise compilers repeat its load at every use, and the loads limit the loop's
  // speed.
  static void keep([[maybe_unused]] VecAvx512& x) {
#ifdef __AVX512F__  // not so where the instructions are emulated (tests/emulated)
    __asm__("" : "+v"(x.v));
#endif
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  friend VecAvx512 operator+(VecAvx512 a, VecAvx512 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend VecAvx512 operator-(VecAvx512 a, VecAvx512 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend VecAvx512 operator*(VecAvx512 a, VecAvx512 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static VecAvx512 fma(VecAvx512 a, VecAvx512 b, VecAvx512 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static VecAvx512 max(VecAvx512 a, VecAvx512 b) { return {_mm512_max_ps(a.v, b.v)}; }
  // To the nearest integer, ties to even.
  static VecAvx512 rint(VecAvx512 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT)}; }
  // p * 2^n for integral n, NaN where n is.
  static VecAvx512 scale_by_power(VecAvx512 p, VecAvx512 n) { return {_mm512_scalef_ps(p.v, n.v)}; }
  // +0 where a < b, else x.
  static VecAvx512 zero_where_less(VecAvx512 a, VecAvx512 b, VecAvx512 x) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLT_UQ), x.v)};
  }

  static Mask mask(uint32_t bits) { return static_cast<Mask>(bits); }
  static VecAvx512 select(Mask m, VecAvx512 a, VecAvx512 b) { return {_mm512_mask_mov_ps(b.v, m, a.v)}; }
  // Bit i: p[i] == x.
  static uint32_t equal_bits(const int32_t* p, int32_t x) {
    return _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(p), _mm512_set1_epi32(x));
  }

  static VecAvx512 load_i8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }
  // a * b - c, rounded once.
  static VecAvx512 fma_less(VecAvx512 a, VecAvx512 b, VecAvx512 c) {
    return {_mm512_fmsub_ps(a.v, b.v, c.v)};
  }
  static VecAvx512 load_bf16(const uint16_t* p) {
    const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
  }
  // The f32 bits of a rounded to bf16 (N1), low half not cleared. No lane is denormal: arithmetic flushes.
  static __m512i bf16_bits(VecAvx512 a) {
    const __m512i x = _mm512_castps_si512(a.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, nan, x, _mm512_set1_epi32(0x00400000));
  }
  static VecAvx512 round_bf16(VecAvx512 a) {
    return {_mm512_castsi512_ps(
        _mm512_and_si512(bf16_bits(a), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
  // out[j][i] = in[i][j] of kWidth x kWidth, row strides in floats.
  static void transpose(const float* in, int64_t ld_in, float* out, int64_t ld_out) {
    __m512i rows[16];
    for (int i = 0; i < 16; ++i) rows[i] = _mm512_loadu_si512(in + i * ld_in);
    transpose16(rows);
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * ld_out, rows[i]);
  }
  void store_bf16(uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_bits(*this), 16)));
  }
};

}  // namespace
}  // namespace ostro::machine
