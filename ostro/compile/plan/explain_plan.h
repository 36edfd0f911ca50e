// `ostro program --stage plan --explain`: for every step of a plan, its cost, the ops that were fused into
// it, and why its neighbours were not. With measured times, also how close the step comes to the limits of
// the machine.
#pragma once

#include <functional>
#include <string>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// What the machine can do at most.
struct MachineLimits {
  double f32_flops = 0, bf16_flops = 0;  // a second
  double bytes = 0;                      // a second, to and from memory
};

// The least time, in seconds, that one run of the step can take on such a machine with empty caches: that of
// its FLOPs or that of its bytes, whichever is longer. Products and attention on bf16 operands use the limit
// for bf16.
double least_seconds(const Step& step, const MachineLimits& limits);

struct Measured {
  MachineLimits limits;
  // Seconds of a run of the step at a place ("12.0.3": step 3 of region 0 of step 12) with that name
  // (step_name), the median; negative: it did not run.
  std::function<double(const std::string& place, const std::string& name)> seconds;
};

// The report of a program called `name`; `module` was lowered with reasons. `measured` may be null.
std::string explain_plan(const std::string& name, const Module& module, const Measured* measured = nullptr);

}  // namespace ostro::compile
