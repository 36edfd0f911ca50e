// open_run_data: finds and opens the data of an existing run, even if this process was started in another
// directory.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "ostro/chain/data_record.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {

// The tokenizer whose hash is in the run's genesis entry: the copy in the run directory, else the config's.
// Errors list every place that was tried and what is wrong there.
Result<std::shared_ptr<const tokenizer::Tokenizer>> open_run_tokenizer(io::FileSystem& fs,
                                                                       const std::string& directory,
                                                                       const TrainConfig& config,
                                                                       const chain::GenesisEntry& genesis);

// Checks that stores hold the data that the chain names: those of the genesis and of every amend that added
// components, as far as `stores` has the components. Error: kInvalidArgument, which begins with "it holds".
Status check_data_of(const chain::Chain& chain, const batches::DataSet& stores);

// As far as `stores` has all these components: checks that the hash of their data is `hash`. Error:
// kInvalidArgument: "another data set: ...", with both hashes and the files that differ.
Status check_same_data(io::FileSystem& fs, const std::string& directory,
                       const std::set<std::string>& components, const std::string& hash,
                       const batches::DataSet& stores);

// The config with which the data of a run are made that goes on with `given`, or begins (no genesis). A
// tokenizer that was trained from the run's texts stays as it is: components that an amend adds are encoded
// with the one in the run directory.
Result<TrainConfig> config_of_added_data(io::FileSystem& fs, const std::string& directory,
                                         const std::optional<chain::GenesisEntry>& genesis,
                                         const TrainConfig& given);

// Opens the tokenizer and the token store whose hashes are in the run's chain. `config` is that of a period
// of the run; its components are opened. It never builds a store and does not need the texts.
//
// The tokenizer is open_run_tokenizer's. The store is looked for in this order:
// `cache`, if it is not empty, and nowhere else; data.cache_dir relative to the directory in which the run
// was last started (run.json); data.cache_dir relative to this process' directory. A component that lies in
// `cache` by its name is read there, also when it has a cache_dir of its own. Errors list every place that
// was tried and what is wrong there.
Result<DataAccess> open_run_data(io::FileSystem& fs, const std::string& directory, const TrainConfig& config,
                                 const chain::Chain& chain, const std::string& cache);

}  // namespace ostro::train
