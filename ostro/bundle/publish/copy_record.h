// copy_record: copies the part of a run's directory that belongs into a bundle, as a run directory of its
// own.
//
// It leaves out what does not decide the run and may describe the machine or have a secret: logs, metrics,
// pages, the command lines and folders in run.json, and the words of commands in config.yaml and in manifests
// of states (train::config_to_show). Of an amend that did not come to its end, the configuration that is in
// force becomes config.yaml. Errors: those of reading and writing; kCorrupt for a manifest that is damaged.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/progress.h"
#include "ostro/chain/chain.h"
#include "ostro/io/files/file_system.h"

namespace ostro::bundle {

struct RecordChoice {
  std::vector<int64_t> steps;  // of the checkpoints to copy
  // false: only the manifest, the parameters and the averages that exports use (audit::is_weight_array) are
  // copied, of these checkpoints and of the state that the run began with
  bool has_moments = true;
};

// Returns `published` and the steps of up to `count` more checkpoints that the chain names and that are
// there, spread evenly over the run, ascending.
Result<std::vector<int64_t>> choose_steps(io::FileSystem& fs, const std::string& run,
                                          const chain::Chain& chain, int64_t published, int64_t count);

// Writes the record of the run, whose chain was read as `chain`, into the new directory `place`. It is
// durable when that has been synced.
Status copy_record(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                   const RecordChoice& choice, const std::string& place, Progress& progress);

}  // namespace ostro::bundle
