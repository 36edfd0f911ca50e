// Resumption: where a run that is there already goes on, and with which config.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/record/amend.h"
#include "ostro/train/step/batches.h"

namespace ostro::run {

struct Resumption {
  int64_t step = 0;        // steps done; without a checkpoint those before the first of the run
  std::string checkpoint;  // directory of the newest one whose manifest is what the chain says; "": none
  std::string name;        // of its state
  bool named = false;      // the chain has this name
  // Compares the fingerprints of its parameters with the chain, for a state whose name that has not.
  std::function<Status(const std::vector<std::array<int64_t, 2>>& prints)> check_prints;
  train::TrainConfig config;  // to go on with: the one given, with the stages of earlier steps as they were
  train::TrainConfig held;    // what the last step was done with; the same unless the run is amended now
  audit::Period period;       // of `held`
};

// Refuses options that no amend may change and that differ from those of the run in `directory`, which began
// with `genesis`.
Status check_fixed_options(const std::string& directory, const chain::GenesisEntry& genesis,
                           const train::TrainConfig& given);

// As above, for the run in the config's run directory, if there is one whose chain can be read.
Status check_fixed_options(io::FileSystem& fs, const train::TrainConfig& given);

struct ResumeOptions {
  bool amend = false;  // other options are taken from that step on, as far as check_amend lets them
  std::optional<int64_t> before = {};  // checkpoints from this step on are known to be damaged
};

// Chooses the newest checkpoint of the run in `directory` whose manifest is what the chain says (witness.h),
// and compares what was given with what held there. Damaged and forged manifests are passed over with a
// warning; the arrays are for LiveState::restore. Reads only.
// Errors name what differs and what to do: another numerics version, tokenizer or data set; options that
// differ without `amend`; a damaged chain; checkpoints of which none can be used.
Result<Resumption> plan_resume(io::FileSystem& fs, const std::string& directory,
                               const chain::GenesisEntry& genesis, const train::TrainConfig& given,
                               const train::DataAccess& data, const models::ModelFunctions& model,
                               const ResumeOptions& options);
// As plan_resume, for a run whose state other processes have, as of step `live` or the next: no checkpoint is
// chosen.
Result<Resumption> plan_takeover(io::FileSystem& fs, const std::string& directory,
                                 const chain::GenesisEntry& genesis, const train::TrainConfig& given,
                                 const train::DataAccess& data, int64_t live);

}  // namespace ostro::run
