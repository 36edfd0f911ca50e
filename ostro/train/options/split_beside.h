// kSplitBeside: the axes along which only values that have another axis, too, are split in a computation
// (spmd::Beside).
#pragma once

#include "ostro/spmd/layout.h"

namespace ostro::train {

// Of all values along `experts` only the experts' weights and their gradients are split: they also have
// `mlp`.
inline const spmd::Beside kSplitBeside = {{"experts", "mlp"}};

}  // namespace ostro::train
