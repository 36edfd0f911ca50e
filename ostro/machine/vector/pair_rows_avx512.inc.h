// store_paired: two rows of bf16 as words, for packers of operands and for attention.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace ostro::machine {
namespace {

// to[i] = low[i], high[i] of 32 bf16 each.
[[gnu::always_inline, maybe_unused]] inline void store_paired(__m512i low, __m512i high, uint32_t* to) {
  alignas(64) static constexpr uint16_t kFirst[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                      37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                      11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i first = _mm512_load_si512(kFirst), last = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, first, high));
  _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(low, last, high));
}

}  // namespace
}  // namespace ostro::machine
