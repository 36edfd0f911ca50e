// Quantize8Kernel: one instruction set's quantisers of blocks (docs/spec/numerics.md, N20). int8_quantize.cc
// does everything else. Internal to ostro/kernels.
#pragma once

#include <cstdint>

namespace ostro::kernels {

// The key of the draws that dither a block.
struct Int8Draws {
  uint32_t key0, key1;
};

// One block along a row of x.
struct Int8RowBlock {
  const void* x;
  bool bf16;
  int64_t count;           // 1 to ir::kMaxInt8Block
  const Int8Draws* draws;  // null: to nearest
  uint64_t index;          // of the first element in the whole array; the others follow
  int8_t* q;
};

// One block along the columns of x: `rows` rows, `columns` columns.
struct Int8ColumnBlock {
  const void* x;
  bool bf16;
  const int64_t* row_at;  // of the first element of each row, in elements
  int64_t rows;
  int columns;             // 1 to kInt8Columns
  const Int8Draws* draws;  // null: to nearest
  const uint64_t* index;   // of the first element of each row, in the whole array
  int8_t* q;               // one row of `rows` numbers for each column
  int64_t q_stride;
  float* scales;  // one for each column
  int64_t scale_stride;
};

inline constexpr int kInt8Columns = 64;

struct Quantize8Kernel {
  float (*row)(const Int8RowBlock&);  // the scale
  void (*columns)(const Int8ColumnBlock&);
};

const Quantize8Kernel& quantize8_generic();
const Quantize8Kernel& quantize8_avx2();
const Quantize8Kernel& quantize8_avx512();

}  // namespace ostro::kernels
