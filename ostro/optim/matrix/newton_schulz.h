// newton_schulz: computes, approximately, the nearest matrix with orthonormal rows or columns, by matrix
// products alone. Called while tracing.
#pragma once

#include "ostro/optim/matrix/names.h"
#include "ostro/trace/ops.h"

namespace ostro::optim {

// Traces the ops for x, f32 [stack..., matrix_rows, matrix_columns] with these two in any order: from x /
// (norm + epsilon), `steps` steps of x <- a x + (b A + c A A) x, with A = x x^T over the shorter side and (a,
// b, c) = (3.4445, -4.7750, 2.0315). `dtype` is the type of the operands of products; their results are f32.
Array newton_schulz(const Array& x, int64_t steps, double epsilon, DType dtype);

}  // namespace ostro::optim
