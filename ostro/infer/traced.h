// traced, traced_shapes: what tracing gives, with its errors as results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/numerics/leaves.h"
#include "ostro/trace/control.h"

namespace ostro::infer {

// The program of `body`, which is called with an input of each shape; verified. `leaves`: its leaf table.
// Errors: kInvalidArgument for what cannot be traced; those of ir::verify.
Result<ir::Program> traced(const std::string& name, const std::vector<ir::Shape>& inputs,
                           const numerics::LeafTable& leaves,
                           const std::function<Arrays(const Arrays&)>& body);
// The shapes of the arrays that `body` makes of nothing, such as those of an empty cache. Error:
// kInvalidArgument.
Result<std::vector<ir::Shape>> traced_shapes(const std::function<Arrays()>& body);

}  // namespace ostro::infer
