// A part of a program as a program of its own.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::ir {

// The program that computes `results` from `params`, both values of the body of `program`. A parameter may be
// a value that an op makes there: then this op is left out. Every other op that a result needs is the same,
// so that the parts of a program, one after another, give its bits. What `results` need must be in `params`.
Program sub_program(const Program& program, const std::string& name, const std::vector<ValueId>& params,
                    const std::vector<ValueId>& results);

}  // namespace ostro::ir
