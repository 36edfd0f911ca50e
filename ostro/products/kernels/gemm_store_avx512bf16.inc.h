// store_bf16_avx512: writes finished tiles 32 columns wide to C as bf16, rounded by VCVTNE2PS2BF16 (N1's
// rounding for every input); narrower ones as store_bf16_plain does.
#pragma once

#include "ostro/machine/vector/round_avx512bf16.inc.h"
#include "ostro/products/kernels/gemm_store_avx512.inc.h"

namespace ostro::kernels {
namespace {

[[maybe_unused]] void store_bf16_avx512(const TileRows& s, uint16_t* c) {
  if (s.columns != kStoreNr) return store_bf16_plain<kStoreNr, machine::round_row_avx512bf16>(s, c);
  const float* from = s.tile;
  for (int r = 0; r < s.rows; ++r, from += kStoreNr) {
    uint16_t* to = c + s.offsets[r];
    const __m512i x =
        __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(_mm512_load_ps(from + 16), _mm512_load_ps(from)));
    if (s.stream && reinterpret_cast<uintptr_t>(to) % 64 == 0) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), x);
    } else {
      _mm512_storeu_si512(to, x);
    }
  }
}

}  // namespace
}  // namespace ostro::kernels
