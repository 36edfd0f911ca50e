// step_routine, check_supported, device_target: the table of the ops that run on a device, and the properties
// of the device that lowering depends on. Pure functions.
#pragma once

#include "ostro/compile/plan/plan.h"
#include "ostro/cuda/steps/step_call.h"

namespace ostro::cuda {

// The routine of an op; nullptr when the op has no device text or becomes another kind of step.
StepRoutine step_routine(ir::OpKind kind);

compile::Target device_target();

// Checks that the device has text for every step of the plan. Error: kUnsupported, with the op of the step
// that it lacks and its place.
Status check_supported(const compile::Plan& plan, const std::string& program);

}  // namespace ostro::cuda
