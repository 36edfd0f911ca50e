// Resumption: the step and the config with which an existing run continues.
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
  int64_t step = 0;        // steps done; without a checkpoint, those before the run's first step
  std::string checkpoint;  // directory of the newest one whose manifest is what the chain says; "": none
  std::string name;        // the name of its state
  bool named = false;      // the chain has this name
  // Compares the fingerprints of its parameters with the chain, for a state whose name is not in the chain.
  std::function<Status(const std::vector<std::array<int64_t, 2>>& prints)> check_prints;
  train::TrainConfig config;  // the config to continue with: the given one, with the stages of earlier steps
  train::TrainConfig held;    // the config of the last step; equal to `config` unless the run is amended now
  audit::Period period;       // the period of `held`
};

// Checks that `given` has the same values as the run in `directory`, of which `config` is a canonical config,
// for all options that no amend may change. Error: kInvalidArgument, with the options and both values.
Status check_fixed_options(const std::string& directory, const std::string& config,
                           const train::TrainConfig& given);

// As above, for the run in the config's run directory, if there is one whose chain can be read.
Status check_fixed_options(io::FileSystem& fs, const train::TrainConfig& given);

struct ResumeOptions {
  bool amend = false;  // changed options apply from that step on, as far as check_amend allows it
  std::optional<int64_t> before = {};  // checkpoints from this step on are known to be damaged
};

// Chooses the newest checkpoint of the run in `directory` whose manifest is what the chain says (witness.h),
// and compares the given config with the one that the run had there. Damaged and forged manifests are passed
// over with a warning. It reads no arrays, which LiveState::restore does, and writes nothing. Errors name
// what differs and what to do: another numerics version, tokenizer or data set; options that differ without
// `amend`; a damaged chain; checkpoints of which none can be used.
Result<Resumption> plan_resume(io::FileSystem& fs, const std::string& directory,
                               const chain::GenesisEntry& genesis, const train::TrainConfig& given,
                               const train::DataAccess& data, const models::ModelFunctions& model,
                               const ResumeOptions& options);
// As plan_resume, but for a run whose state other processes have, after step `live` or the next one. It
// chooses no checkpoint.
Result<Resumption> plan_takeover(io::FileSystem& fs, const std::string& directory,
                                 const chain::GenesisEntry& genesis, const train::TrainConfig& given,
                                 const train::DataAccess& data, int64_t live);

}  // namespace ostro::run
