// coordinator_options: the options of a coordinator, as every launcher makes them from a run's configuration.
#pragma once

#include "ostro/cluster/coordinator.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// Returns the options for min_workers to max_workers workers, as far as the configuration's mesh allows.
// Makes the run's directory, in which the coordinator keeps its files: the journal, by which a second
// coordinator of the run is refused, and cluster.json, for ostro status. Errors: kInvalidArgument when the
// directory is not local; those of check_fixed_options (loop/resume.h) for the run that is in it.
Result<cluster::CoordinatorOptions> coordinator_options(const train::TrainConfig& config, int64_t min_workers,
                                                        int64_t max_workers);

}  // namespace ostro::run
