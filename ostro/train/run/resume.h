// Where a run that is there already goes on, and with which config.
#pragma once

#include <string>

#include "ostro/train/run/amend.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

struct Resumption {
  State state;  // after the newest checkpoint that can be used; step 0 without arrays when there is none yet
  std::string name;    // of that state
  bool named = false;  // the chain has this name
  TrainConfig config;  // to go on with: the one given, with the stages of earlier steps as they were
  TrainConfig held;    // what the last step was done with; the same unless the run is amended now
  Period period;       // of `held`
};

// Refuses options that no amend may change and that differ from those of the run in `directory`, which began
// with `genesis`.
Status check_fixed_options(const std::string& directory, const GenesisEntry& genesis,
                           const TrainConfig& given);

// Restores the newest checkpoint of the run in `directory` that is whole and what the chain says (witness.h),
// and compares what was given with what held there. Damaged and forged checkpoints are passed over with a
// warning. Reads only. `amend`: other options are taken from that step on, as far as check_amend lets them.
// Errors name what differs and what to do: another numerics version, tokenizer or data set; options that
// differ without `amend`; a damaged chain; checkpoints of which none can be used.
Result<Resumption> plan_resume(io::FileSystem& fs, const std::string& directory, const GenesisEntry& genesis,
                               const TrainConfig& given, const DataAccess& data,
                               const models::ModelFunctions& model, bool amend);
// The same for a run whose state other processes have, as of step `live` or the next: nothing is restored.
Result<Resumption> plan_takeover(io::FileSystem& fs, const std::string& directory,
                                 const GenesisEntry& genesis, const TrainConfig& given,
                                 const DataAccess& data, int64_t live);

}  // namespace ostro::train
