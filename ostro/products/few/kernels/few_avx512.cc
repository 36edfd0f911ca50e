// Products of few rows, on AVX-512.
//
// gcc 12 takes what its own header leaves undefined, and its instructions do not read, for a mistake (its bug
// 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "ostro/machine/vector/vec_avx512.h"
#include "ostro/products/few/kernels/few_rows.inc.h"

namespace ostro::kernels {
namespace {

using machine::VecAvx512;

struct TurnAvx512 {
  static void turn(const void* const* w, int64_t byte, float* out) {
    __m512i rows[16];
    for (int j = 0; j < 16; ++j) rows[j] = _mm512_loadu_si512(static_cast<const char*>(w[j]) + byte);
    machine::transpose16(rows);
    for (int i = 0; i < 16; ++i) _mm512_store_si512(out + i * 2 * VecAvx512::kWidth, rows[i]);
  }
  static VecAvx512 low(const float* at) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(at), 16))};
  }
  static VecAvx512 high(const float* at) {
    return {_mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(at), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
};

using FewAvx512 = FewRowsOf<VecAvx512, TurnAvx512>;

}  // namespace

const FewKernel& few_f32_avx512() {
  static constexpr FewKernel kKernel = FewAvx512::f32(16, 16);
  return kKernel;
}

const FewKernel& few_bf16_avx512() {
  static constexpr FewKernel kKernel = FewAvx512::bf16(12, 12);
  return kKernel;
}

}  // namespace ostro::kernels
