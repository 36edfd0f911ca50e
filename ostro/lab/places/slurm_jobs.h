// SlurmJobs: steps as jobs of Slurm, one each.
//
// sbatch takes a script of the step's folder in the lab, which starts `ostro lab step` by srun, since Slurm
// signals steps and not scripts before it takes a node away. A job has a name that follows from the lab's
// folder and the step, by which the next driver finds it. Secrets are in a file that only its user can read.
#pragma once

#include <memory>
#include <string>

#include "ostro/lab/places/elsewhere.h"

namespace ostro::lab {

struct SlurmOptions {
  std::string sbatch;  // further options of sbatch, as typed
  int cpus = 1;        // of a step
};

// Errors: an option that is not the caller's to set; the queue cannot be read.
Result<std::unique_ptr<Cluster>> slurm_jobs(io::FileSystem& fs, const SlurmOptions& options);

}  // namespace ostro::lab
