// run_dot, run_attention, run_cross_entropy, ...: the routines of ops whose device text is chosen by shape:
// the folders products (N6, N7), integers (N20), attention (N9) and losses (N11) hold them. The choice among
// kernels changes no bit; tables of offsets stay on the device. Errors and threads: those of routines
// (cuda/steps/step_call.h).
#pragma once

#include "ostro/cuda/steps/step_call.h"

namespace ostro::cuda {

Status run_dot(const StepCall& call);
Status run_expert_dot(const StepCall& call);
Status run_expert_outer(const StepCall& call);

Status run_quantize(const StepCall& call);
Status run_dot_int8(const StepCall& call);
// integers/experts.cc
Status run_expert_dot_int8(const StepCall& call);
Status run_expert_outer_int8(const StepCall& call);

Status run_attention(const StepCall& call);
Status run_attention_grad(const StepCall& call);
// attention/paged.cc. Each waits for the device, to check pages and places on the host.
Status run_paged_write(const StepCall& call);
Status run_paged_attention(const StepCall& call);

Status run_cross_entropy(const StepCall& call);
Status run_cross_entropy_sum(const StepCall& call);
Status run_cross_entropy_grad(const StepCall& call);

}  // namespace ostro::cuda
