// apply_experts: the second half of a mixture of experts, for a program that has only some experts in memory.
// Called while tracing.
#pragma once

#include "ostro/nn/moe.h"

namespace ostro::nn {

// Returns Moe::Result::y for x [tokens..., embed]: the sum of the experts that `routed` chose and of the
// shared part. `moe` needs no router, and only these experts: `routed.expert` has their places in gate_up and
// down.
Array apply_experts(const Moe& moe, const Array& x, const Routed& routed, const Activate& activate,
                    Loc loc = Loc::current());

}  // namespace ostro::nn
