// cancel_slurm_jobs, end_strange_jobs: take a run's jobs out of Slurm's queue, and wait until they are gone.
#pragma once

#include <string>
#include <vector>

#include "ostro/cluster/slurm/queue.h"

namespace ostro::cluster {

// Cancels every job of the queue's name that waits or runs, also one of which sbatch told nothing, and those
// of `own`, which the queue need not list. Returns what the queue lists as alive after a minute; while it
// cannot be read, that is `own`, without states. What scancel says against it is in the log.
std::vector<SlurmJob> cancel_slurm_jobs(const SlurmQueue& queue, const std::vector<std::string>& own);

// The same for jobs of an earlier launcher that do not know this one's address or secret and cannot learn
// them: they would wait in vain, and hold their nodes. The log says how many there are. Errors: kIo when the
// queue cannot be read, or lists them still as alive after a minute.
Status end_strange_jobs(const SlurmQueue& queue);

}  // namespace ostro::cluster
