// matrix_axes: a parameter as matrices: its axes divided into rows, columns, and a stack of matrices. A pure
// function.
#pragma once

#include "ostro/optim/update_rule.h"

namespace ostro::optim {

struct MatrixAxes {
  Axes stack, rows, columns;
  int64_t row_count = 1, column_count = 1;
};

// Axes of layers and experts are stacks. Rows are the input axes of a Linear, columns its output axes. Any
// other parameter of two axes or more, such as an embedding, has its first axis as rows, the others as
// columns. A vector has no rows.
MatrixAxes matrix_axes(const Parameter& parameter);

}  // namespace ostro::optim
