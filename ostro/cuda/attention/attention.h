// run_attention, run_attention_grad: attention on a device (N9).
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_attention(const StepCall& call);
Status run_attention_grad(const StepCall& call);

}  // namespace ostro::cuda
