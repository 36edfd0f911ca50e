// save_initial, load_initial and others: the initial checkpoint of a run that begins with a checkpoint's
// parameters (trainer.initialize_from), or with the state of another run (a fork).
//
// The whole initial state is kept as a checkpoint in the run directory, and the genesis has its name:
// resuming and verifying do not need the checkpoint that it came from. Errors name the tensor,
// file or directory that is wrong.
#pragma once

#include <optional>
#include <string>

#include "ostro/chain/chain_entry.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::audit {

// The folder of a run directory that is the root of its initial checkpoint.
inline constexpr const char* kInitialFolder = "initial";
// The folder of a run directory that holds another program's model while a run begins with it.
inline constexpr const char* kImportedFolder = "imported";

// Replaces the parameters of `state` by those of `from` (trainer.initialize_from): a checkpoint, or the
// newest one of a run, which must be what its chain says. Returns the origin of an imported checkpoint
// (origin.h), else nothing. Adapters that `from` lacks stay as they were drawn. All other parameters must be
// in both; errors name the tensor, both shapes and the checkpoint.
Result<std::optional<std::string>> take_parameters(io::FileSystem& fs, const train::TrainConfig& config,
                                                   const std::string& from, const train::StateArrays& arrays,
                                                   train::State& state);

// Writes the state at step 0 as the initial checkpoint, also when it was written before. Returns its name.
Result<std::string> save_initial(io::FileSystem& fs, const std::string& run_directory,
                                 const train::TrainConfig& config, const train::StateArrays& arrays,
                                 const train::State& state);

// Returns the directory of the initial checkpoint. Errors: kNotFound when it is not there, kCorrupt when its
// state has another name than the genesis says.
Result<std::string> initial_checkpoint(io::FileSystem& fs, const std::string& run_directory,
                                       const chain::GenesisEntry& genesis);
// Checks that load_initial can begin: the initial checkpoint is there, with its moments or of step 0, where
// all moments are zero. Reads no arrays. A genesis without `initial` needs no checkpoint.
Status check_initial(io::FileSystem& fs, const std::string& run_directory,
                     const chain::GenesisEntry& genesis);
// Reads the state of the initial checkpoint into the arrays of `arrays`.
Result<train::State> load_initial(io::FileSystem& fs, const std::string& run_directory,
                                  const chain::GenesisEntry& genesis, const train::StateArrays& arrays);

}  // namespace ostro::audit
