// store_f32_plain, store_bf16_plain: GemmKernel::store_f32 and store_bf16 with AVX2, for tiles of `Nr`
// columns in memory. The kernel files include this.
//
// Each writes the first s.columns columns of s.rows rows of the tile to C (gemm_kernel.h, TileRows). They use
// nothing but their arguments, so threads may write different rows at the same time. There are no errors.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {
namespace {

// Copies `count` floats. `from` is aligned for vectors. With `stream` and an aligned `to` the stores go past
// the caches.
[[maybe_unused]] inline void copy_row(const float* from, int count, float* to, bool stream) {
  if (count % 8 != 0) {
    std::memcpy(to, from, static_cast<size_t>(count) * 4);
  } else if (stream && reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    for (int i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  } else {
    for (int i = 0; i < count; i += 8) _mm256_storeu_ps(to + i, _mm256_load_ps(from + i));
  }
}

template <int Nr>
[[maybe_unused]] void store_f32_plain(const TileRows& s, float* c) {
  for (int r = 0; r < s.rows; ++r) copy_row(s.tile + r * Nr, s.columns, c + s.offsets[r], s.stream);
}

// Round(from, n, to) rounds n floats to bf16 as N1 says.
template <int Nr, void (*Round)(const float*, int64_t, uint16_t*)>
[[maybe_unused]] void store_bf16_plain(const TileRows& s, uint16_t* c) {
  for (int r = 0; r < s.rows; ++r) {
    uint16_t* to = c + s.offsets[r];
    if (s.stream && s.columns == 32 && reinterpret_cast<uintptr_t>(to) % 32 == 0) {
      alignas(32) uint16_t rounded[32];
      Round(s.tile + r * Nr, s.columns, rounded);
      for (int i = 0; i < 32; i += 16)
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                            _mm256_load_si256(reinterpret_cast<const __m256i*>(rounded + i)));
    } else {
      Round(s.tile + r * Nr, s.columns, to);
    }
  }
}

}  // namespace
}  // namespace ostro::kernels
