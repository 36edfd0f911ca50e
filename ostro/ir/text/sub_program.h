// sub_program: a part of a program as a program of its own. A pure function.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Returns the program that computes `results` from `params`, both values of the body of `program`. A
// parameter may be a value that an op makes there: then this op is left out. Every other op that a result
// needs is unchanged, so the parts of a program, run one after another, give its bits. Every parameter of
// `program` that `results` need and that no value of `params` replaces must be in `params`.
Program sub_program(const Program& program, const std::string& name, const std::vector<ValueId>& params,
                    const std::vector<ValueId>& results);

}  // namespace ostro::ir
