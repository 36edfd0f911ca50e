// fork_run: begins a run with the state of another one (docs/reference/formats/chain.md, "Forks").
//
// The new run directory has everything that training in it needs: state, configuration, programs, tokenizer,
// and a chain whose genesis names the parent. `ostro train` then goes on as with any run that has no
// checkpoint yet. The parent is only read.
#pragma once

#include <span>
#include <string>

#include "ostro/data/arrays/build_settings.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

struct ForkRequest {
  std::string parent;  // run directory
  int64_t step = 0;    // the step of a permanent checkpoint of the parent
  std::string out;     // run directory of the fork
};

// Returns the configuration with which the parent made the state, with `overrides`. When it names no
// tokenizer, or the file is not there, its tokenizer is the parent's copy. It names no other checkpoint to
// begin with. Errors: as fork_run for the step; those of the overrides.
Result<train::TrainConfig> config_of_parent(io::FileSystem& fs, const ForkRequest& request,
                                            std::span<const config::Override> overrides,
                                            const models::ModelChoices& models);

// Returns the configuration of the fork with what is `given`, as fork_run() makes it but for trainer.id and
// log_dir. Errors: as fork_run for the step and the options.
Result<train::TrainConfig> config_of_fork(io::FileSystem& fs, const ForkRequest& request,
                                          const train::TrainConfig& given);

struct Forked {
  train::TrainConfig config;  // resolved, as config.yaml of the fork has it
  std::string state;          // name of the state that it begins with
  std::string head;           // the head of the new chain
  bool was_there = false;     // the directory held this fork already, and nothing was changed
};

// Makes the fork with the configuration `given`, whose trainer.id and log_dir become those of `request.out`.
// Builds the token store if it does not exist. The chain is written last, so a call that was interrupted can
// be repeated. Errors: kInvalidArgument when the parent has no permanent checkpoint of that step (with the
// nearest, and the time of the steps to it), or when options differ that no fork may change (with both
// values); kBusy when the directory holds another run; kCorrupt when the parent's checkpoint is not what its
// chain says.
Result<Forked> fork_run(io::FileSystem& fs, const ForkRequest& request, const train::TrainConfig& given,
                        const data::BuildSettings& build);

}  // namespace ostro::run
