// run_cross_entropy, run_cross_entropy_sum, run_cross_entropy_grad: the routines of losses over rows of
// logits on a device (N11). Errors and threads: those of routines (cuda/device/step_call.h).
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_cross_entropy(const StepCall& call);
Status run_cross_entropy_sum(const StepCall& call);
Status run_cross_entropy_grad(const StepCall& call);

}  // namespace ostro::cuda
