// Int8Kernel: one instruction set's functions for products of a few rows with an int8 matrix: a few steps of
// the contraction for a strip of columns. gemm_int8.cc does everything else. Internal to ostro/kernels.
#pragma once

#include <cstdint>

namespace ostro::kernels {

inline constexpr int kInt8Group = 32;  // N7: steps of a group
inline constexpr int kInt8Steps = 8;   // of the contraction that are made together
inline constexpr int kInt8Rows = 8;    // the most rows of A

// Element (k, n) of B is w[k][n] * scales[k][n], for kInt8Steps k and `columns` n.
struct Int8Block {
  const int8_t* const* w;
  const int8_t* const* ahead;  // rows that are read later, in the form of w; they are prefetched
  const float* const* scales;
  bool same_scales;  // all steps have those of the first
  int64_t larger;    // bf16_usual: scales[k][larger + n] is that times kInt8Larger
  const float* x;    // A as [kInt8Steps][rows]
  int rows;          // 1 to kInt8Rows
  int64_t columns;   // a multiple of Int8Kernel::columns
  // The chains as [rows][stride]: of N7 those of even and odd k; of N6 the sums are in `even`.
  float *even, *odd;
  int64_t stride;
};

struct Int8Kernel {
  int columns;  // columns of a block are a multiple of this
  // N6, for `steps` steps.
  void (*f32)(const Int8Block&, int steps);
  // N7 with B rounded to bf16, for any finite scales.
  void (*bf16)(const Int8Block&);
  // bf16 where int8_scale_is_usual holds for every scale; faster.
  void (*bf16_usual)(const Int8Block&);
  // c = c + (even + odd), after which both are +0 again; `count` is a multiple of `columns`.
  void (*end_group)(float* even, float* odd, float* c, int64_t count);
};

// 2^16 + 1. With a bf16 scale s, a whole number q of 8 bits and c = (q s)(2^16 + 1), rounded: c + (q s - c)
// is q s rounded to bf16, ties to even (Dekker's splitting; gemm_int8_test.cc tries all q and s).
inline constexpr float kInt8Larger = 65537.0f;
// Whether that holds for every product with this scale: no product is tiny, no sum overflows, no zero has a
// sign.
inline bool int8_scale_is_usual(float scale) { return scale >= 0x1p-100f && scale <= 0x1p90f; }

const Int8Kernel& int8_generic();
const Int8Kernel& int8_avx2();
const Int8Kernel& int8_avx512();

}  // namespace ostro::kernels
