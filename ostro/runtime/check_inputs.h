// check_inputs: checks that inputs have the shapes of a program's parameters. A pure function.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/shape.h"
#include "ostro/runtime/buffer.h"

namespace ostro::runtime {

// `names` are those of the parameters, or empty. Error: kInvalidArgument with the program, the input and both
// shapes.
Status check_inputs(const std::string& program, const std::vector<std::string>& names,
                    std::span<const ir::Shape> expected, std::span<const Buffer> inputs);

}  // namespace ostro::runtime
