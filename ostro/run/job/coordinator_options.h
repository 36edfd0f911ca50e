// coordinator_options: the options of a coordinator, as every launcher makes them from a run's configuration.
#pragma once

#include "ostro/cluster/coordinator.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// For min_workers to max_workers workers, as far as the configuration's mesh allows. The coordinator keeps
// its files in the run's directory, which is made: the journal, so that two coordinators of one run find each
// other, and what it knows of the workers, for ostro status. Errors: kInvalidArgument when the directory is
// not local; those of check_fixed_options (loop/resume.h) for the run that is in it.
Result<cluster::CoordinatorOptions> coordinator_options(const train::TrainConfig& config, int64_t min_workers,
                                                        int64_t max_workers);

}  // namespace ostro::run
