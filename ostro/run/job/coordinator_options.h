// What every launcher tells a coordinator of a run.
#pragma once

#include "ostro/cluster/coordinator.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// For min_workers to max_workers workers, as far as the configuration's mesh allows. The coordinator keeps
// its files in the run's directory, which is made: the journal, so that two coordinators of one run find each
// other, and what it knows of the workers, for ostro status. Errors: the numbers make no sense; the directory
// is not local.
Result<cluster::CoordinatorOptions> coordinator_options(const train::TrainConfig& config, int64_t min_workers,
                                                        int64_t max_workers);

}  // namespace ostro::run
