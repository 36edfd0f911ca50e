// continue_with, check_amend, periods_of: amend a run, so that it continues with a changed config or program.
// This file decides which options may change, how values by step (stages) continue, and what the chain's
// amend entry says (docs/reference/formats/chain.md, "Amends").
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

// A part of a run that has one config, one program and one set of data.
struct Period {
  int64_t first = 0;                              // number of steps done when the period began
  std::string config;                             // canonical
  std::string program_hash;                       // SHA-256 of the canonical programs' texts
  std::string data_hash;                          // of the stores of all components of `config`
  std::map<std::string, std::string> data_roots;  // as GenesisEntry::data_roots
};

// The periods of a run: one from the genesis entry, then one for every amend entry. If several begin at the
// same step, the last one is in force. `options` may be any config; only its list of options is used.
//
// Error: kCorrupt for an amend entry that does not start from the values in force before it, whose text is
// not exactly what amend_difference gives for the change, or that adds components and names no data of them,
// or the other way round. The message begins with `where` (the chain's path) and the line number.
Result<std::vector<Period>> periods_of(const train::TrainConfig& options, const chain::Chain& chain,
                                       const std::string& where);

// The `difference` text of an amend entry: what changes from period `before` to period `after`. "{}" if
// nothing differs.
std::string amend_difference(const train::TrainConfig& options, const Period& before, const Period& after);

// A difference for a person to read: "optimizer.learning_rate from 0.001 to 0.0003; ...". Without the roots
// of data.
std::string amend_text(const std::string& difference);

// The full config of a period. Options that are not in its canonical config (paths, plan, output) are taken
// from `base`. Error: no config has this canonical form.
Result<train::TrainConfig> config_of_period(const train::TrainConfig& base, const std::string& canonical);

// The config with which a run continues after `step` steps. `before` is the config in force so far, `now` the
// new one. The result is resolved.
//
// Stages of data.train_weights and trainer.train_batch_size that begin before `step` are taken from `before`.
// So the batches of those steps stay the same, every component continues behind the data already used, and
// one config describes the whole run. A stage begins at `step` if `now` has one there, or if its value
// differs from the value before. Example: weights 1 in `before`, 2 in `now`, step 100: [[0, 1], [100, 2]].
// The single component of `before` may have had no weight; beside others it then has weight 1 before `step`.
//
// If numerics.leaf_examples was not given, it keeps its old value as long as this divides the batch sizes
// from `step` on. Otherwise it gets the default for them. Error: a given leaf_examples does not divide a
// batch size from `step` on.
Result<train::TrainConfig> continue_with(const train::TrainConfig& before, train::TrainConfig now,
                                         int64_t step);

// The options that differ although no amend may change them, one per entry: "model.num_layers is 2 there and
// 4 here (...)".
std::vector<std::string> fixed_differences(const train::TrainConfig& options, const std::string& there,
                                           const std::string& here);

// The same without data.components when `here` only adds to those of `there`, which an amend may do. For
// other changes of it the entry says which component is in the way.
std::vector<std::string> fixed_at_amends(const train::TrainConfig& options, const std::string& there,
                                         const std::string& here);

// Checks that a run may be amended from `before` to `after` when `step` steps are done. No fixed option may
// change, except that components may be added; nothing may change for steps already done, so added components
// may not give their batches another form; and there must be steps left. Error: kInvalidArgument with the
// options and both values.
Status check_amend(const train::TrainConfig& before, const train::TrainConfig& after, int64_t step);

// The file in a run directory that holds the programs of the genesis entry.
inline constexpr const char* kProgramFile = "program.ir";
// Name of the file in the run directory that holds the programs with this hash.
std::string program_file(const chain::GenesisEntry& genesis, const std::string& program_hash);

}  // namespace ostro::audit
