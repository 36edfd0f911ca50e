// `ostro program --stage plan --explain --measure`: how long the steps of the programs take here.
#pragma once

#include <map>
#include <string>

#include "ostro/compile/plan/explain_plan.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/programs/programs.h"

namespace ostro::cli {

struct PlanTimes {
  compile::MachineLimits limits;
  std::map<std::string, double> seconds;  // by program, place and name of the step: the median of a run

  compile::Measured of(const std::string& program) const;
};

// Runs training steps of one leaf of made-up tokens on new parameters, at least three and for about a second,
// behind one that does not count; learning rate 0. The engine is one that has a plan (cpu/engine_plan.h).
Result<PlanTimes> measure_plans(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                const std::string& remat, int64_t vocab);

}  // namespace ostro::cli
