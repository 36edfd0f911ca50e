// verify: the verifier of programs. It runs after tracing, after grad and between passes.
#pragma once

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Checks that every operand is defined once and before its use, that result shapes follow the shape rules,
// that regions are closed, and that leaf axes have one size class. The error names the op and its location.
Status verify(const Program& program);
Status verify(const Block& block);

}  // namespace ostro::ir
