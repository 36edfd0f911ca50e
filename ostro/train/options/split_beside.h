// kSplitBeside: pairs of axes for partitioning. In a computation, a value is split along the first axis of a
// pair only if it also has the second one (spmd::Beside).
#pragma once

#include "ostro/spmd/layout.h"

namespace ostro::train {

// Of all values with the axis `experts`, only the experts' weights and their gradients are split, because
// only they also have `mlp`.
inline const spmd::Beside kSplitBeside = {{"experts", "mlp"}};

}  // namespace ostro::train
