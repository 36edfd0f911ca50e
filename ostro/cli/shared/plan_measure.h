// `ostro program --stage plan --explain --measure`: measures how long the steps of a plan take on this
// machine.
#pragma once

#include <map>
#include <string>

#include "ostro/compile/plan/explain_plan.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/programs/programs.h"

namespace ostro::cli {

struct PlanTimes {
  compile::MachineLimits limits;
  std::map<std::string, double> seconds;  // by program, place and name of the step: median seconds per run

  compile::Measured of(const std::string& program) const;
};

// Runs training steps of one leaf with made-up tokens, new parameters and learning rate 0. It runs at least
// three steps and for about a second, after one step that does not count. The engine must have a plan
// (cpu/engine_plan.h).
Result<PlanTimes> measure_plans(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                const std::string& remat, int64_t vocab);

}  // namespace ostro::cli
