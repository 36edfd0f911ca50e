// open_run_data: finds and opens the data of an existing run, even if this process was started in another
// directory.
#pragma once

#include <string>

#include "ostro/chain/chain_entry.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {

// The tokenizer whose hash is in the run's genesis entry: the copy in the run directory, else the config's.
// Errors list every place that was tried and what is wrong there.
Result<std::shared_ptr<const tokenizer::Tokenizer>> open_run_tokenizer(io::FileSystem& fs,
                                                                       const std::string& directory,
                                                                       const TrainConfig& config,
                                                                       const chain::GenesisEntry& genesis);

// Opens the tokenizer and the token store whose hashes are in the run's genesis entry. It never builds a
// store and does not need the texts.
//
// The tokenizer is open_run_tokenizer's. The store is looked for in this order:
// `cache`, if it is not empty, and nowhere else; data.cache_dir relative to the directory in which the run
// was last started (run.json); data.cache_dir relative to this process' directory. Errors list every place
// that was tried and what is wrong there.
Result<DataAccess> open_run_data(io::FileSystem& fs, const std::string& directory, const TrainConfig& config,
                                 const chain::GenesisEntry& genesis, const std::string& cache);

}  // namespace ostro::train
