// verify: the verifier of programs. It runs after tracing, after grad and between passes. Pure functions.
#pragma once

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Checks that every operand is defined once and before its use, that result shapes follow the shape rules,
// that regions are closed, and that leaf axes have one size class. Error: kInvalidArgument; it names the op
// and its location. For a block alone, the axes of leaves and the names of parameters are not checked.
Status verify(const Program& program);
Status verify(const Block& block);

}  // namespace ostro::ir
