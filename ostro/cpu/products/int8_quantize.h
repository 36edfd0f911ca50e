// quantize_rows, quantize_columns: cut f32 or bf16 numbers to int8 with a power of two as the scale of each
// block (docs/spec/numerics.md, N20), to nearest or dithered. The bits do not depend on instruction set or
// thread count.
//
// For quantize_rows the contracted axis is the contiguous one. For quantize_columns it is the outer one: each
// column of x becomes a row of the result. Both results are operands of Int8Dot (int8_dot.h).
#pragma once

#include <cstdint>

#include "ostro/cpu/machine/isa.h"
#include "ostro/cpu/machine/thread_pool.h"
#include "ostro/cpu/products/gemm.h"
#include "ostro/cpu/products/int8_blocks.h"
#include "ostro/numerics/threefry.h"

namespace ostro::cpu {

// The counter of element (row, column) of x is its index in the global array: R * columns + first_column +
// column, with R = rows[row], or R = first_row + row where `rows` is null.
struct Int8Dither {
  numerics::Key key;
  int64_t columns;                // of the global array
  int64_t first_column = 0;       // that x holds
  int64_t first_row = 0;          // that x holds, where its rows are neighbours in the global array
  const int64_t* rows = nullptr;  // the global index of each row of x
};

// Row i of x begins `stride` elements after row i - 1.
struct Int8Input {
  const void* x;
  GemmType type;
  int64_t rows, columns, stride;
  const Int8Dither* dither = nullptr;  // null: to nearest
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
void quantize_rows(ThreadPool& pool, Isa isa, const Int8Input& input, const Int8Blocks& blocks,
                   const Int8Output& out);

// out: [columns][rows], scales [columns][blocks.count()]. blocks.k() is `rows`.
void quantize_columns(ThreadPool& pool, Isa isa, const Int8Input& input, const Int8Blocks& blocks,
                      const Int8Output& out);

}  // namespace ostro::cpu
