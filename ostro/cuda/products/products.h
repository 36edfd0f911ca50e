// run_dot, run_expert_dot, run_expert_outer: products on a device (N6, N7), by tables of offsets that stay
// there.
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_dot(const StepCall& call);
Status run_expert_dot(const StepCall& call);
Status run_expert_outer(const StepCall& call);

}  // namespace ostro::cuda
