// run_dot, run_expert_dot, run_expert_outer: the routines of products on a device (N6, N7;
// cuda/device/step_call.h). They use tables of offsets, which stay on the device.
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_dot(const StepCall& call);
Status run_expert_dot(const StepCall& call);
Status run_expert_outer(const StepCall& call);

}  // namespace ostro::cuda
