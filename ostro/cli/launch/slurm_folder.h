// make_slurm_folder, bring_beside, print_slurm_scripts, slurm_last_words: the files that `ostro launch slurm`
// keeps for a run's jobs, in SlurmWorker::directory.
#pragma once

#include <string>

#include "ostro/cli/launch/slurm_call.h"

namespace ostro::cli {

// Where the nodes share the folder: the two scripts (batch_script.h).
std::string slurm_job_file(const cluster::SlurmWorker& worker);
std::string slurm_worker_file(const cluster::SlurmWorker& worker);
// Prints what sbatch would get, without an address and the secret.
void print_slurm_scripts(const cluster::SlurmWorker& worker);
// Makes the folder: private where others may know its name. Errors: kIo; it is another user's.
Status make_slurm_folder(const SlurmCall& call, const cluster::SlurmWorker& worker, io::FileSystem& fs);
// Copies what workers need beside the scripts, which the nodes see, and tells `worker` where it is.
Status bring_beside(const SlurmCall& call, const train::TrainConfig& config, const Context& context,
                    cluster::SlurmWorker& worker);
// The last lines of what a job wrote, or where they are; "": nothing.
std::string slurm_last_words(const cluster::SlurmWorker& worker, io::FileSystem& fs, const std::string& job);

}  // namespace ostro::cli
