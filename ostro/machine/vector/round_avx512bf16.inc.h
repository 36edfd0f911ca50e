// round_row_avx512bf16: rounds a row of `count` f32 values to bf16 with VCVTNEPS2BF16, which is N1's rounding
// for every input (docs/spec/numerics.md).
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace ostro::machine {
namespace {

[[maybe_unused]] void round_row_avx512bf16(const float* in, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = static_cast<__mmask16>(count - i >= 16 ? 0xffff : (1 << (count - i)) - 1);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, in + i));
    _mm256_mask_storeu_epi16(out + i, mask, __builtin_bit_cast(__m256i, rounded));
  }
}

}  // namespace
}  // namespace ostro::machine
