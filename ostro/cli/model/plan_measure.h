// measure_plans: measures how long the steps of a plan take on this machine, for `ostro program --stage plan
// --explain --measure`.
#pragma once

#include <map>
#include <string>

#include "ostro/runtime/engine.h"
#include "ostro/runtime/inspector.h"
#include "ostro/train/programs/programs.h"

namespace ostro::cli {

struct PlanTimes {
  runtime::MachineLimits limits;
  std::map<std::string, double> seconds;  // by program, place and name of the step: median seconds per run

  runtime::Measured of(const std::string& program) const;
};

// Runs training steps of one leaf with made-up tokens, new parameters and learning rate 0. It runs at least
// three steps and for about a second, after one step that does not count. `inspector` is the engine's.
// Errors: those of the engine.
Result<PlanTimes> measure_plans(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                runtime::Inspector& inspector, const std::string& remat, int64_t vocab);

}  // namespace ostro::cli
