// MatrixParts: a hidden matrix for optimizers that work on whole matrices: the maps of a fused weight one by
// one, with one axis of rows and one of columns, whole on every worker.
#pragma once

#include <vector>

#include "ostro/optim/matrix/names.h"
#include "ostro/optim/matrix_axes.h"

namespace ostro::optim {

// Returns whether the parameter is a Linear's weight, but not the head.
bool is_hidden_matrix(const Parameter& parameter);

// A value; its functions are called while tracing.
class MatrixParts {
 public:
  // `parameter` must be a hidden matrix.
  explicit MatrixParts(const Parameter& parameter);

  struct Part {
    std::vector<Axis> stack, rows, columns;  // of the matrices, in the parameter's order
    Axes order;                              // all of them
    int64_t row_count = 1, column_count = 1;
  };
  const std::vector<Part>& parts() const { return parts_; }

  // Cuts x, with the parameter's axes, into its parts: [stack..., matrix_rows, matrix_columns], in some
  // order.
  std::vector<Array> split_up(const Array& x) const;
  // The inverse of split_up().
  Array joined(const std::vector<Array>& matrices) const;

 private:
  Axes rows_, columns_;  // names in the parameter
  std::string fused_;    // its axis that is cut into parts; empty: there is one part
  std::vector<int64_t> counts_;
  std::vector<Part> parts_;
};

}  // namespace ostro::optim
