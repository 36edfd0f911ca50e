// Axes along which computing splits only some of the values that have them.
#pragma once

#include "ostro/spmd/layout.h"

namespace ostro::train {

// Of values along experts only their weights are split, which have mlp.
inline const spmd::Beside kSplitBeside = {{"experts", "mlp"}};

}  // namespace ostro::train
