// What one instruction set contributes to products of a few rows with an int8 matrix: one group of 32 steps of
// the contraction for a few columns. Internal to ostro/cpu; gemm_int8.cc does everything else.
#pragma once

#include <cstdint>

namespace ostro::cpu {

inline constexpr int64_t kInt8Group = 32;  // N7: steps of a group
inline constexpr int kInt8Rows = 8;        // the most rows of A

// Element (k, n) of B is w[k * w_stride + n] * scales[k][n], n from `column` on.
struct Int8Block {
  const int8_t* w;
  int64_t w_stride;
  const float* const* scales;  // kInt8Group rows
  int64_t count;               // steps that there are; those behind them, up to a group, have zeros in w and x
  const float* x;              // A as [kInt8Group][rows]
  int rows;                    // 1 to kInt8Rows
  float* c;                    // [rows][c_stride], to which the group is added
  int64_t c_stride;
  int64_t column;
};

struct Int8Kernel {
  int columns;                      // of a block
  void (*f32)(const Int8Block&);    // N6
  void (*bf16)(const Int8Block&);   // N7, B rounded to bf16; for any finite scales
  // The same where every scale is +0 or positive, and as small or large as int8_scale_is_usual says.
  void (*bf16_usual)(const Int8Block&);
};

// Whether rounding by an addition gives the right bits for each product with this scale: none of these is tiny,
// none too large to be added to, and no zero has a sign.
inline bool int8_scale_is_usual(float scale) { return scale >= 0x1p-100f && scale <= 0x1p90f; }

const Int8Kernel& int8_generic();
const Int8Kernel& int8_avx2();
const Int8Kernel& int8_avx512();

}  // namespace ostro::cpu
