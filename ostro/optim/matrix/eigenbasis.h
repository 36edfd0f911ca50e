// iterated_basis: the eigenbasis of a symmetric matrix, followed from step to step by orthogonal iteration.
// The functions trace ops.
#pragma once

#include <string>

#include "ostro/trace/ops.h"

namespace ostro::optim {

// The share of a matrix's mean eigenvalue that is added to its diagonal, so that directions without any
// weight keep their vectors.
inline constexpr double kDamping = 1e-3;

// f32 [side, other], 1 where both indices are equal.
Array identity(const std::string& side, const std::string& other, int64_t size);

// One step of orthogonal iteration: the Q of the QR decomposition of (a + damping) basis, whose R has a
// positive diagonal, by modified Gram-Schmidt in f64. a f32 [stack..., side, other], symmetric; basis f32
// [stack..., side, other], its vectors along `side`, numbered by `other`. Result: as basis.
Array iterated_basis(const Array& a, const Array& basis, const std::string& side, const std::string& other);

// The Q of the QR decomposition of x, f32 [stack..., along, vectors]: each column without its components
// along the columns before it, with length 1. No column may be zero, or a combination of those before it.
Array orthonormal(const Array& x, const std::string& along, const std::string& vectors);

}  // namespace ostro::optim
