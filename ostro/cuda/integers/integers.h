// run_quantize, run_dot_int8: the routines of integer products on a device (N20). The choice among kernels
// changes no bit. Errors and threads: those of routines (cuda/device/step_call.h).
#pragma once

#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

Status run_quantize(const StepCall& call);
Status run_dot_int8(const StepCall& call);

}  // namespace ostro::cuda
