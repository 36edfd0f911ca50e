// Training by this program: what a session has besides the loop, and what the process says at its end.
#pragma once

#include "ostro/cli/shared/progress.h"
#include "ostro/context/context.h"
#include "ostro/run/loop/session.h"

namespace ostro::cli {

// The environment of a session on `engine`: the import of models that a run begins with, the run's page, and
// the building of its data, shown on `line`. All must outlive it.
Result<run::Environment> training_environment(const Context& context, runtime::Engine& engine,
                                              const train::TrainConfig& config, BuildProgressLine& line);

// What the process prints and exits with after run_session().
int report_outcome(const Result<run::RunOutcome>& outcome);

}  // namespace ostro::cli
