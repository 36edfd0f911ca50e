// SlurmCall: what was asked of `ostro launch slurm`, and what follows from it: whether it can be done, and
// what the jobs run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cli/launch/brought_run.h"
#include "ostro/cluster/slurm/batch_script.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// The options of the command, without those of the configuration.
struct SlurmCall {
  std::string nodes, sbatch, bind, program, folder, jobs, slices;
  int64_t workers = 1, grace = 120, failures = 3, left_out = 600;
  std::optional<int64_t> port;
  bool requeue = false, dry_run = false, amend = false;
  BringOptions bring;
};

// MIN:MAX, or one number for both. kInvalidArgument for anything else.
Result<std::pair<int64_t, int64_t>> slurm_node_counts(const std::string& text);
// kInvalidArgument names the option that cannot be, and why.
Status check_slurm_call(const SlurmCall& call, const train::TrainConfig& config);

bool run_in_object_store(const train::TrainConfig& config);
// Whether this machine and the nodes need to share no folder for scripts.
bool shares_nothing(const SlurmCall& call, const train::TrainConfig& config);

// A worker of the run as a job of Slurm starts it, with these words. Errors: a folder that has no name, or
// one that no script can name.
Result<cluster::SlurmWorker> slurm_worker(const SlurmCall& call, const train::TrainConfig& config,
                                          std::vector<std::string> words);

}  // namespace ostro::cli
