// run_attention, run_attention_grad: the routines of attention on a device (N9). Errors and threads: those of
// routines (cuda/device/step_call.h).
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_attention(const StepCall& call);
Status run_attention_grad(const StepCall& call);

}  // namespace ostro::cuda
