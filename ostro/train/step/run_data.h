// The data of a run that is there already, wherever this process was started.
#pragma once

#include <string>

#include "ostro/train/record/chain_entry.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {

// The tokenizer and token store that a run's genesis names by hash. The tokenizer is the copy in the run
// directory, else the config's. The store is `cache` when that is not empty; else data.cache_dir as seen from
// the directory that the run was last started in (run.json), else as seen from this process. Never builds a
// store and needs no texts. Errors name every place that was looked at and why it would not do.
Result<DataAccess> open_run_data(io::FileSystem& fs, const std::string& directory, const TrainConfig& config,
                                 const GenesisEntry& genesis, const std::string& cache);

}  // namespace ostro::train
