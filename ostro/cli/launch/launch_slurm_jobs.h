// launch_slurm_jobs: `ostro launch slurm` when its options are known: a coordinator in this process, and jobs
// of Slurm that are its workers.
#pragma once

#include <string>
#include <vector>

#include "ostro/cli/launch/slurm_call.h"

namespace ostro::cli {

// Runs until the run is over or stopped by a signal; returns the exit status. `typed`: the command's words.
// Jobs of an earlier launcher that was killed are taken over, or cancelled where they cannot learn how to
// reach this one. Errors: options that cannot be; the folder for jobs, the coordinator or Slurm's queue
// cannot be had.
Result<int> launch_slurm_jobs(const SlurmCall& call, const train::TrainConfig& config, const Context& context,
                              const std::vector<std::string>& typed);

}  // namespace ostro::cli
