// value_and_grad_block: reverse-mode differentiation of a Block.
//
// Its result is part of the canonical program. So the rules, the order of their operands and the order in
// which contributions are added are part of the numerics (docs/spec/numerics.md, N5; docs/spec/grad.md).
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro {

// Returns a block with f's parameters. Its results are f's results, then the gradients of result 0 with
// respect to the parameters `wrt` (indices). Result 0 must be a floating scalar. A gradient has the shape and
// dtype of its parameter; it is zero when the result does not depend on the parameter. An error names the op
// that has no derivative and its call site. A pure function.
Result<ir::Block> value_and_grad_block(const ir::Block& f, const std::vector<int64_t>& wrt);

}  // namespace ostro
