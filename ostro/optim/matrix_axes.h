// A parameter as matrices: which of its axes are rows, columns, and a stack of matrices.
#pragma once

#include "ostro/optim/update_rule.h"

namespace ostro::optim {

struct MatrixAxes {
  Axes stack, rows, columns;
  int64_t row_count = 1, column_count = 1;
};

// Axes of layers and experts are stacks. Rows are the input axes of a Linear, columns its output axes; of any
// other parameter of two axes or more, an embedding say, its first axis, and the others. Fewer: no rows.
MatrixAxes matrix_axes(const Parameter& parameter);

}  // namespace ostro::optim
