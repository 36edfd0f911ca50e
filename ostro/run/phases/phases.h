// configs_of_phases, amends_of, train_phases: a run that is amended several times, at steps that are known
// before it begins. Each phase but the first is an amend (docs/reference/formats/chain.md, "Amends") where
// the one before it ended, which is its trainer.num_train_steps.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// The configs in force, as the chain will have them. `given` has one for each phase: what is given to
// `ostro train` for the first, and to `ostro train --amend` for the others. Errors: of continue_with and
// check_amend.
Result<std::vector<train::TrainConfig>> configs_of_phases(std::vector<train::TrainConfig> given);

// An amend that is to come: the fields of the chain's entry. Its difference has options and programs; where
// it adds components, the entry of the chain has hashes of data, too.
struct ComingAmend {
  int64_t step = 0;
  std::string difference;
};
// `programs` has the hash of the canonical programs of each config.
std::vector<ComingAmend> amends_of(std::span<const train::TrainConfig> configs,
                                   std::span<const std::string> programs);

// Where a run goes on.
struct PhaseStart {
  size_t phase = 0;
  bool amend = false;  // the phase begins now, with its amend
  bool operator==(const PhaseStart&) const = default;
};
// For the run in `directory`, which may not have begun. It follows from the newest checkpoint that is there
// and from the amends that the chain has up to it. A checkpoint that is damaged (checkpoint::damage_of) is
// set aside, with a warning, where older ones are of another phase: the run goes on in that phase. No process
// may work on the run.
Result<PhaseStart> phase_to_continue(io::FileSystem& fs, const std::string& directory,
                                     std::span<const train::TrainConfig> configs);

// Begins the run of the configs, or continues it where it is, through all phases. `train` does a session of a
// phase, as run_session() does. Returns its last outcome: of the last phase, or of the one that was stopped.
Result<RunOutcome> train_phases(io::FileSystem& fs, std::span<const train::TrainConfig> configs,
                                const std::function<Result<RunOutcome>(size_t phase, bool amend)>& train);

}  // namespace ostro::run
