// SliceKernels: what attention on integers (docs/spec/numerics.md, N21) does between its products, for one
// instruction set: slices of rows, exponentials, gradients of scores, and weights as packed operands.
// Internal to ostro/kernels/attention.
//
// Scores lie as [key][query]: lanes are queries, as many as a panel of the right operand of the kernel of
// products has rows (16 or 32). Bit i of a word is set where query i sees the key. Functions use only their
// arguments, so threads may call them at the same time. Callers set N0's floating-point environment.
#pragma once

#include <cstdint>

namespace ostro::kernels {

inline constexpr int64_t kSliceBlock = 128;  // keys or queries of a block of weights: part of the bits

// What turns scores into exponents.
struct ScoreScale {
  float kappa = 1, scale = 1;
  float soft_cap = 0;  // 0: none
};

// Scores of one block of keys and one panel of queries; they become p, +0 where masked.
struct SoftmaxBlock {
  float* s;               // [keys][lanes]
  const uint32_t* words;  // [keys]
  int64_t keys;           // 1 to kSliceBlock
  int lanes;
  ScoreScale of;
  float *m, *l;  // [lanes]: the running maximum and sum
  float* c;      // [lanes]: by what sums so far are multiplied
};

// Scores and dp, of which p and ds are made, +0 where masked. dp becomes ds.
struct GradientBlock {
  float *s, *dp;  // [keys][lanes]; s is overwritten with a soft cap
  const uint32_t* words;
  int64_t keys;
  int lanes;
  ScoreScale of;
  const float *m, *r, *delta;  // [lanes]
  float* room;                 // [keys][lanes]; used with a soft cap
  float *p, *ds;               // the lanes of rows of kSliceBlock numbers, of each key one
};

// Weights of one block, cut by query and packed as a panel of a right operand over kSliceBlock keys: the high
// slices and the scales, then the low and the high slices and the scales again.
struct LaneWeights {
  float* w;              // [kSliceBlock][lanes]: p or ds of the first `keys`; overwritten
  const float* factors;  // [keys]: the scales of the rows that are summed
  int64_t keys;
  int lanes;
  bool bytes;     // numbers are packed as bytes, four in a word, else as two of 16 bits
  uint32_t flip;  // what a word of zeros is packed as
  void* out;
};

// Weights of one block, cut by key: row i is w[i] over kSliceBlock queries.
struct RowWeights {
  const float* w;        // [rows][kSliceBlock]
  const float* factors;  // [kSliceBlock]
  int64_t rows;
  int8_t* q;      // [rows][2][kSliceBlock]: high slices, then low ones
  float* scales;  // [rows]
};

struct SliceKernels {
  // The slices of a row of n numbers, f32 or bf16; returns its scale.
  float (*slice)(const void* x, bool bf16, int64_t n, int8_t* high, int8_t* low);
  void (*softmax)(const SoftmaxBlock&);
  void (*gradients)(const GradientBlock&);
  void (*lane_weights)(const LaneWeights&);
  void (*row_weights)(const RowWeights&);
};

const SliceKernels& slices_generic();
const SliceKernels& slices_avx2();
const SliceKernels& slices_avx512();

}  // namespace ostro::kernels
