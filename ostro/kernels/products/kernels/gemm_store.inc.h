// store_f32_plain, store_bf16_plain: write finished tiles of any width to C in AVX2. Included by the kernel
// files.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "ostro/kernels/products/kernels/gemm_kernel.h"

namespace ostro::kernels {
namespace {

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
