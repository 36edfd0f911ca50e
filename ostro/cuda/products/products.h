// run_dot, run_expert_dot, run_expert_outer: the routines of products on a device (N6, N7). They use tables
// of offsets, which stay on the device. Errors and threads: those of routines (cuda/device/step_call.h).
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_dot(const StepCall& call);
Status run_expert_dot(const StepCall& call);
Status run_expert_outer(const StepCall& call);

}  // namespace ostro::cuda
