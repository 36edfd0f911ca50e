// Reverse-mode differentiation of a Block. What it returns is part of the canonical program: the rules, their
// operand order and the order in which contributions are added are numerics (docs/numerics.md, N5;
// docs/grad.md).
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro {

// A block with f's parameters whose results are f's results, then the cotangents of the parameters `wrt`
// (indices), for a cotangent of exactly 1 of result 0, which must be a floating scalar. A parameter that the
// result does not depend on gets zeros. Cotangents have their parameter's shape and dtype. An error names the
// op that has no derivative and its call site.
Result<ir::Block> value_and_grad_block(const ir::Block& f, const std::vector<int64_t>& wrt);

// The general form: parameters are f's, then one cotangent per floating result of f in order; results are f's
// results, then the cotangents of `wrt`.
Result<ir::Block> vjp_block(const ir::Block& f, const std::vector<int64_t>& wrt);

}  // namespace ostro
