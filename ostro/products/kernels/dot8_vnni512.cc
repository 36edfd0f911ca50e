// Products of int8 numbers with scales on AVX-512 VNNI: 12 x 32 outputs.
//
// gcc 12 takes what its own header leaves undefined, and its instructions do not read, for a mistake (its bug
// 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "ostro/machine/vector/transpose16_avx512.inc.h"
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

constexpr int kRows = 12, kVectors = 2;
using Tile = WordTile<Vnni512, kRows, kVectors>;

// Numbers k to k + 63 of 16 rows from `row` on, as words: word i of result j is word j of row `row` + i. What
// is not there is 0.
inline void load_words(const Int8PanelSource& s, int row, int64_t k, __m512i (&words)[16]) {
  const int64_t count = s.count - k;
  const __mmask64 mask = count >= 64 ? ~__mmask64{0} : count <= 0 ? 0 : (__mmask64{1} << count) - 1;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    words[i] = row + i < s.rows ? _mm512_maskz_loadu_epi8(mask, s.q + (row + i) * s.stride + k)
                                : _mm512_setzero_si512();
  machine::transpose16(words);
}

// As pack8_groups and row_sums of Tile::pack_a; the sums grow lane by lane, a row in each.
void pack_left(const Int8PanelSource& s, void* out, int32_t* sums) {
  constexpr __mmask16 kPanel = (1 << kRows) - 1;
  auto* to = static_cast<int32_t*>(out);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t k = 0; k < s.steps; k += 64) {
    __m512i words[16];
    load_words(s, 0, k, words);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (k + 4 * i >= s.steps) break;
      Vnni512::dot(sum, _mm512_set1_epi32(0x01010101), words[i]);
      _mm512_mask_storeu_epi32(to, kPanel, words[i]);
      to += kRows;
    }
  }
  _mm512_mask_storeu_epi32(sums, kPanel, _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, 7)));
}

// As Tile::pack_b.
void pack_right(const Int8PanelSource& s, void* out) {
  const __m512i flip = _mm512_set1_epi32(static_cast<int>(0x80808080u));
  for (int row = 0; row < Tile::kNr; row += 16) {
    auto* to = static_cast<int32_t*>(out) + row;
    for (int64_t k = 0; k < s.steps; k += 64) {
      __m512i words[16];
      load_words(s, row, k, words);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        if (k + 4 * i >= s.steps) break;
        _mm512_storeu_si512(to, _mm512_xor_si512(words[i], flip));
        to += Tile::kNr;
      }
    }
  }
}

constexpr DotInt8Kernel with_packers(DotInt8Kernel kernel) {
  kernel.pack_a = pack_left;
  kernel.pack_b = pack_right;
  return kernel;
}

}  // namespace

const DotInt8Kernel& dot8_vnni512() {
  static constexpr DotInt8Kernel kKernel = with_packers(Tile::kernel("vnni512", gemm_bf16_avx512));
  return kKernel;
}

}  // namespace ostro::kernels
