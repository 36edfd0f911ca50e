// store_f32_avx512: writes finished tiles 32 columns wide to C in AVX-512; narrower ones as store_f32_plain
// does.
#pragma once

#include "ostro/products/tile/gemm_store.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kStoreNr = 32;

[[maybe_unused]] void store_f32_avx512(const TileRows& s, float* c) {
  if (s.columns != kStoreNr) return store_f32_plain<kStoreNr>(s, c);
  const float* from = s.tile;
  for (int r = 0; r < s.rows; ++r, from += kStoreNr) {
    float* to = c + s.offsets[r];
    const __m512 x = _mm512_load_ps(from), y = _mm512_load_ps(from + 16);
    if (s.stream && reinterpret_cast<uintptr_t>(to) % 64 == 0) {
      _mm512_stream_ps(to, x);
      _mm512_stream_ps(to + 16, y);
    } else {
      _mm512_storeu_ps(to, x);
      _mm512_storeu_ps(to + 16, y);
    }
  }
}

}  // namespace
}  // namespace ostro::kernels
