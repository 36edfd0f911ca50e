// The order of a traced function's ops, made to follow from what the function computes. C++ leaves the order
// in which arguments are evaluated to the compiler, so `a(x) + b(x)` is traced as a, b by one and as b, a by
// another; the program hash and the order in which a value's cotangents are added must not know.
#pragma once

#include <cstddef>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Orders the ops depth first from the results, operands from left to right, regions too. Constants of a scan
// and captured operands of a cond are ordered by their first use inside. Ops, constants and captured operands
// that no result needs are dropped. Values keep their ids (numerics.md N15).
void canonical_order(Block& block);

// The same for the ops from `first_op` on, from `roots`: what one rule of differentiation appended. Nothing
// else may use their results yet.
void canonical_order(Block& block, size_t first_op, const std::vector<ValueId>& roots);

}  // namespace ostro::ir
