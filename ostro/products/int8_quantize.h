// quantize_rows, quantize_columns: cut f32 or bf16 numbers to int8 with a power of two as the scale of each
// block (docs/spec/numerics.md, N20), to nearest or dithered. The bits do not depend on instruction set or
// thread count.
//
// For quantize_rows the contracted axis is the contiguous one. For quantize_columns it is the outer one: each
// column of x becomes a row of the result. Both results are operands of Int8Dot (int8_dot.h).
#pragma once

#include <cstdint>

#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/numerics/threefry.h"
#include "ostro/products/gemm.h"
#include "ostro/products/int8_blocks.h"

namespace ostro::kernels {

// The index of element (row, column) of x in the whole array is first[row] + column, or first_of_all + row *
// step + column where `first` is null. So rows may be any rows of the whole array, and columns a part of its
// columns.
struct Int8Dither {
  numerics::Key key;
  int64_t first_of_all = 0;
  int64_t step = 0;                // the columns of the whole array
  const int64_t* first = nullptr;  // one for each row of x
};

// Row i of x begins row_at[i] elements after x, or i * stride where `row_at` is null.
struct Int8Input {
  const void* x;
  GemmType type;
  int64_t rows, columns, stride;
  const Int8Dither* dither = nullptr;  // null: to nearest
  const int64_t* row_at = nullptr;
};

// As Int8Operand, to be written.
struct Int8Output {
  int8_t* q;
  int64_t stride;
  float* scales;
  int64_t scale_stride;
};

// out: [rows][columns], scales [rows][blocks.count()]. blocks.k() is `columns`. Rows are shared among the
// threads.
void quantize_rows(machine::ThreadPool& pool, machine::Isa isa, const Int8Input& input,
                   const Int8Blocks& blocks, const Int8Output& out);

// out: [columns][rows], scales [columns][blocks.count()]. blocks.k() is `rows`.
void quantize_columns(machine::ThreadPool& pool, machine::Isa isa, const Int8Input& input,
                      const Int8Blocks& blocks, const Int8Output& out);

}  // namespace ostro::kernels
