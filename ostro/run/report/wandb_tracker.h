// wandb_tracker: sends the metrics of a run to Weights & Biases by its Python package.
#pragma once

#include <memory>
#include <string>

#include "ostro/run/report/tracker.h"

namespace ostro::run {

// A Python process (python3, or the one that OSTRO_PYTHON names) calls the package `wandb`; metrics go to it
// as lines of JSON. log() never waits for it. The run is named by the last part of `run_directory` and keeps
// its id, which stands in `run_directory`/wandb/ostro_run_id, when it is resumed. Files of the package go to
// `run_directory`/wandb. Errors: no Python, no package, or what wandb.init says; of log(): the process has
// gone, or does not take metrics any more.
Result<std::unique_ptr<Tracker>> wandb_tracker(io::FileSystem& fs, const std::string& run_directory,
                                               const train::WandbTrackerOptions& options);

}  // namespace ostro::run
