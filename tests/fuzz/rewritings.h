// What the compiler's passes make of a program.
#pragma once

#include <vector>

#include "compare.h"
#include "ostro/base/error.h"

namespace ostro::fuzz {

// The program after each pass alone, and after all of them; rematerialisation by several policies.
// The error names the pass whose program is not legal.
Result<std::vector<Rewriting>> rewritings(const ir::Program& program);

}  // namespace ostro::fuzz
