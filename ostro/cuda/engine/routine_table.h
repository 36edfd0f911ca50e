// step_routine, check_supported, device_target: which ops run on a device, and what lowering must know of
// them.
#pragma once

#include "ostro/compile/plan/plan.h"
#include "ostro/cuda/device/step_call.h"

namespace ostro::cuda {

// nullptr: the op has no device text, or becomes another kind of step.
StepRoutine step_routine(ir::OpKind kind);

compile::Target device_target();

// Error: a step of the plan that the device has no text for, with its op and place. Nothing runs on the host
// instead.
Status check_supported(const compile::Plan& plan, const std::string& program);

}  // namespace ostro::cuda
