// Initial checkpoint: for a run that begins with a checkpoint's parameters (trainer.initialize_from), or with
// the state of another run (a fork).
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

// Of a run directory: the root of its initial checkpoint.
inline constexpr const char* kInitialFolder = "initial";
// Where another program's model is while a run begins with it.
inline constexpr const char* kImportedFolder = "imported";

// Replaces the parameters that `from` (trainer.initialize_from) has: a checkpoint, or a run's newest one,
// which must be what its chain says. Returns the origin of an imported checkpoint (origin.h). Adapters that
// it lacks stay as they were drawn. Other parameters must be in both: errors name the tensor, both shapes and
// the checkpoint.
Result<std::optional<std::string>> take_parameters(io::FileSystem& fs, const train::TrainConfig& config,
                                                   const std::string& from, const train::StateArrays& arrays,
                                                   train::State& state);

// Writes the state at step 0; returns its name. If it was written before, it is written again.
Result<std::string> save_initial(io::FileSystem& fs, const std::string& run_directory,
                                 const train::TrainConfig& config, const train::StateArrays& arrays,
                                 const train::State& state);

// The directory of the initial checkpoint, which must be there and have the name that the genesis has.
Result<std::string> initial_checkpoint(io::FileSystem& fs, const std::string& run_directory,
                                       const chain::GenesisEntry& genesis);
// Whether load_initial can begin: the initial checkpoint is there, with its moments, or it is of step 0,
// where all moments are zero. Reads no arrays. A genesis without `initial` needs none.
Status check_initial(io::FileSystem& fs, const std::string& run_directory,
                     const chain::GenesisEntry& genesis);
Result<train::State> load_initial(io::FileSystem& fs, const std::string& run_directory,
                                  const chain::GenesisEntry& genesis, const train::StateArrays& arrays);

}  // namespace ostro::audit
