// canonical_order: puts the ops of a traced function into an order that depends only on what the function
// computes.
//
// C++ does not fix the order in which arguments are evaluated: one compiler traces `a(x) + b(x)` as a, b and
// another as b, a. Neither the program hash nor the order in which cotangents are added may depend on that.
// Both functions change only the block that they are given.
#pragma once

#include <cstddef>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Orders the ops depth first from the results, operands from left to right, and inside regions in the same
// way. Constants of a scan and captured operands of a cond are ordered by their first use inside. Ops,
// constants and captured operands that no result needs are dropped. Values keep their ids (numerics.md N15).
void canonical_order(Block& block);

// Orders only the ops from index `first_op` on, depth first from `roots`. Used for the ops that one rule of
// differentiation appended. No other op may use their results yet.
void canonical_order(Block& block, size_t first_op, const std::vector<ValueId>& roots);

}  // namespace ostro::ir
