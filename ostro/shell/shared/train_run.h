// training_environment, train_here, report_outcome: the parts of a training session that belong to this
// program, and the end of the process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/run/loop/session.h"
#include "ostro/shell/shared/progress.h"

namespace ostro::cli {

// The environment of a session on `engine`: the import of models that a run begins with, the run's page, and
// the building of its data, shown on `line`. All must outlive it.
Result<run::Environment> training_environment(const Context& context, runtime::Engine& engine,
                                              const train::TrainConfig& config, BuildProgressLine& line);

// Trains on an engine of the context, with so many workers in this process (nothing: those of
// OSTRO_SIM_WORKERS), to the step `until` (nothing: to the end) or until context.stop says so. `argv` is for
// run.json; `on_open` is called when the run is opened, and this process alone has its directory. Errors: of
// run_session().
Result<run::RunOutcome> train_here(const Context& context, const train::TrainConfig& config,
                                   std::vector<std::string> argv, std::optional<train::StepRange> profile,
                                   bool amend, std::optional<int64_t> workers = {},
                                   const std::function<void()>& on_open = {},
                                   std::optional<int64_t> until = {});

// Prints the result of run_session(): the run hash, or that the run was stopped, or the error. Returns the
// exit code.
int report_outcome(const Result<run::RunOutcome>& outcome);

}  // namespace ostro::cli
