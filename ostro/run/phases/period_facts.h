// PeriodFacts: what each part of a run between its amends was, from its chain: steps, changes, learning rate,
// batch size, tokens. For tables that people read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

struct PeriodFacts {
  int64_t first_step = 0, last_step = 0;  // counted from 1; of a period without steps last_step is the lesser
  std::string changes;                    // what the amend changed, from what to what; empty for the first
  std::string data_hash;
  int64_t tokens = 0;  // that had a loss
  // Of the first and last step. Nothing where no config of this program is like that of the chain.
  std::optional<double> first_rate, last_rate;
  std::optional<int64_t> first_batch, last_batch;  // sequences
};

// One for each period, in the order of their steps; a period in which nothing was done, because it was
// amended at the same step, is left out. `base` may be any config of the run's model. Errors: those of
// periods_of; `where`, the chain's path, begins them.
Result<std::vector<PeriodFacts>> period_facts(const train::TrainConfig& base, const chain::Chain& chain,
                                              const std::string& where);

}  // namespace ostro::run
