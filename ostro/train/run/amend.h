// A run that goes on with another config or program: which options may change, how stages go on, and what an
// amend entry of the chain says (docs/formats/chain.md, "Amends").
#pragma once

#include <string>
#include <vector>

#include "ostro/train/options/config.h"
#include "ostro/train/record/chain.h"

namespace ostro::train {

// Steps of a run with one config and program.
struct Period {
  int64_t first = 0;         // steps done when it began
  std::string config;        // canonical
  std::string program_hash;  // SHA-256 of the canonical programs' texts
};

// The periods of a run: that of its genesis, then one for every amend entry; of several that begin at one
// step the last holds. `options`: any config, for the options there are. ErrorCode::kCorrupt for an entry
// whose difference does not begin with what held before it, or is not the text that amend_difference gives
// for what it leads to; the message begins with `where` (the chain's path) and the line.
Result<std::vector<Period>> periods_of(const TrainConfig& options, const Chain& chain,
                                       const std::string& where);

// What leads from a canonical config and program to others: the text of an amend entry's `difference`. "{}"
// when nothing differs.
std::string amend_difference(const TrainConfig& options, const Period& before, const Period& after);

// A difference for a person: "optimizer.learning_rate from 0.001 to 0.0003; ...".
std::string amend_text(const std::string& difference);

// The config of a period: all that is not in its canonical config (places, plan, output) is as in `base`.
// Errors: no config has this canonical form.
Result<TrainConfig> config_of_period(const TrainConfig& base, const std::string& canonical);

// `now` for a run that has done `step` steps under `before`: stages of data.train_weights and
// trainer.train_batch_size that begin before `step` are what they were, so batches of these steps stay, each
// component goes on behind what was taken of it, and one config says it all. A stage begins at `step` where
// `now` has one or its value is another than before. numerics.leaf_examples that was not given stays what it
// was as long as it divides the batch sizes from `step` on, else it is the default for these. Resolved.
// Errors: a size from `step` on that leaf_examples does not divide.
Result<TrainConfig> continue_with(const TrainConfig& before, TrainConfig now, int64_t step);

// Options that no amend may change, "model.num_layers is 2 there and 4 here (...)", one per entry.
std::vector<std::string> fixed_differences(const TrainConfig& options, const std::string& there,
                                           const std::string& here);

// Whether an amend may lead from one canonical config to the next after `step` steps: no option that is
// fixed, nothing that reaches back before that step, and steps left to do. ErrorCode::kInvalidArgument names
// the options with both values.
Status check_amend(const TrainConfig& before, const TrainConfig& after, int64_t step);

// canonical_object of a config's canonical form, as the genesis holds it.
std::string canonical_text(const TrainConfig& config);

// The file of a run directory that holds the programs of this hash: program.ir for those of the genesis.
std::string program_file(const GenesisEntry& genesis, const std::string& program_hash);

}  // namespace ostro::train
