// copy_record: the part of a run's directory that a bundle takes along, as a run directory of its own.
//
// Left out is what does not decide the run and may tell of the machine: logs, metrics, pages, and of run.json
// the command lines and folders.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/progress.h"
#include "ostro/chain/chain.h"
#include "ostro/io/files/file_system.h"

namespace ostro::bundle {

struct RecordChoice {
  std::vector<int64_t> steps;  // of the checkpoints to copy
  // false: of these, and of the state that the run began with, the manifest, the parameters and the means of
  // them that exports use (audit::is_weight_array)
  bool has_moments = true;
};

// `count` more steps of checkpoints that the chain names and that are there, spread evenly over the run, and
// `published`. Ascending.
Result<std::vector<int64_t>> choose_steps(io::FileSystem& fs, const std::string& run,
                                          const chain::Chain& chain, int64_t published, int64_t count);

// Writes the record of the run, whose chain was read as `chain`, into the directory `place`, which is made.
// Not durable before it is synced.
Status copy_record(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                   const RecordChoice& choice, const std::string& place, Progress& progress);

}  // namespace ostro::bundle
