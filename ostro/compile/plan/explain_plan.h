// explain_plan: the report of `ostro program --stage plan --explain`: for every step of a plan, its cost, the
// ops that were fused into it, and why its neighbours were not. With measured times, also how close the step
// comes to the limits of the machine. Pure functions.
#pragma once

#include <string>

#include "ostro/compile/plan/plan.h"
#include "ostro/runtime/inspector.h"

namespace ostro::compile {

using runtime::MachineLimits, runtime::Measured;

// The least time, in seconds, that one run of the step can take on such a machine with empty caches: that of
// its FLOPs or that of its bytes, whichever is longer. Products and attention on bf16 operands use the limit
// for bf16.
double least_seconds(const Step& step, const MachineLimits& limits);

// The report of a program called `name`; `module` was lowered with reasons. `measured` may be null.
std::string explain_plan(const std::string& name, const Module& module, const Measured* measured = nullptr);

}  // namespace ostro::compile
