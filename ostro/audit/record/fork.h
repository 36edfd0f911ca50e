// fork_with, check_fork, check_parent: forks. A fork is a run that goes on with the state of another one, its
// parent, under a chain of its own (docs/reference/formats/chain.md, "Forks"). This file decides which
// options may change at a fork, and whether a fork and a parent belong together.
#pragma once

#include <string>
#include <vector>

#include "ostro/audit/record/amend.h"

namespace ostro::audit {

// Two folders of a run directory. Each holds the chain of another run, up to the entry that names the state
// which this run began with: the parent of a fork, and the run that made a published model. Each also holds
// the same two folders of that run.
inline constexpr const char* kParentFolder = "parent";
inline constexpr const char* kMakerFolder = "maker";

// Returns the period that made the state after `step` steps. An amend after the same step belongs to the next
// period.
const Period& period_that_made(const std::vector<Period>& periods, int64_t step);

// Returns the config of a fork after `step` steps, resolved. It is that of continue_with(); but when the data
// or their order have changed, the weights of components are those of `now` from the first step on.
Result<train::TrainConfig> fork_with(const train::TrainConfig& before, const train::TrainConfig& now,
                                     int64_t step);

// Checks that a fork may go on with `after` from a state that `before` made. A fork may change everything
// that an amend may change, and also the data, their order, the length of sequences, the seed and the
// numerics, because the form of the state does not depend on them. Error: kInvalidArgument with the options
// and both values.
Status check_fork(const train::TrainConfig& before, const train::TrainConfig& after, int64_t step);

// Checks that the chain at `where` has the entry that the fork's genesis names, and that this entry names the
// state that the fork began with. Error kCorrupt: with both values.
Status check_parent(const chain::GenesisEntry& fork, const chain::Chain& parent, const std::string& where);

// Copies into `to` (RUN/parent or RUN/maker) the chain in the directory `from`, up to its entry with the hash
// `head`, and the two folders that `from` has. Replaces what `to` holds. Errors: kCorrupt for a damaged
// chain, and those of reading and writing.
Status copy_ancestry(io::FileSystem& fs, const std::string& from, const std::string& head,
                     const std::string& to);

}  // namespace ostro::audit
