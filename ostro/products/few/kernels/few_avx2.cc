// Products of few rows, on AVX2.
#include "ostro/machine/vector/transpose8_avx2.inc.h"
#include "ostro/machine/vector/vec_avx2.h"
#include "ostro/products/few/kernels/few_rows.inc.h"

namespace ostro::kernels {
namespace {

using machine::VecAvx2;

struct TurnAvx2 {
  static void turn(const void* const* w, int64_t byte, float* out) {
    for (int word = 0; word < kFewWords; word += 8) {
      __m256i rows[8];
      for (int j = 0; j < 8; ++j)
        rows[j] = _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(static_cast<const char*>(w[j]) + byte + 4 * word));
      machine::transpose8(rows);
      for (int i = 0; i < 8; ++i)
        _mm256_store_si256(reinterpret_cast<__m256i*>(out + (word + i) * 2 * VecAvx2::kWidth), rows[i]);
    }
  }
  static __m256i words(const float* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
  static VecAvx2 low(const float* at) { return {_mm256_castsi256_ps(_mm256_slli_epi32(words(at), 16))}; }
  static VecAvx2 high(const float* at) {
    return {
        _mm256_castsi256_ps(_mm256_and_si256(words(at), _mm256_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
};

using FewAvx2 = FewRowsOf<VecAvx2, TurnAvx2>;

}  // namespace

const FewKernel& few_f32_avx2() {
  static constexpr FewKernel kKernel = FewAvx2::f32(16, 32);
  return kKernel;
}

const FewKernel& few_bf16_avx2() {
  static constexpr FewKernel kKernel = FewAvx2::bf16(12, 24);
  return kKernel;
}

}  // namespace ostro::kernels
