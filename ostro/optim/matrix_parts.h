// MatrixParts: divides the weight of a Linear into the matrices that an optimizer like Muon works on.
//
// A fused weight holds several linear maps, one after the other along an axis (nn::Fused). Each of them is a
// part, with one axis of rows and one of columns, and layers or experts as stacks of matrices. No mesh splits
// these axes, so the matrices are whole on every worker.
#pragma once

#include <vector>

#include "ostro/optim/matrix/names.h"
#include "ostro/optim/matrix_axes.h"

namespace ostro::optim {

// Returns true for the weight of a Linear, except that of the model's head.
bool is_hidden_matrix(const Parameter& parameter);

// A value; its functions are called while tracing.
class MatrixParts {
 public:
  // `parameter` must be a hidden matrix.
  explicit MatrixParts(const Parameter& parameter);

  struct Part {
    // The axes of the part, in the parameter's order. `order` has the names of all of them.
    std::vector<Axis> stack, rows, columns;
    Axes order;
    int64_t row_count = 1, column_count = 1;  // of one matrix
  };
  const std::vector<Part>& parts() const { return parts_; }

  // Cuts x, which has the parameter's axes, into its parts, one array for each of parts(). Their axes are
  // [stack..., matrix_rows, matrix_columns], in any order.
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
