// Forks: a run that goes on with the state of another one, its parent, under a chain of its own
// (docs/reference/formats/chain.md, "Forks"). This file decides which options may change at a fork, and
// whether a fork and a parent belong together.
#pragma once

#include <string>
#include <vector>

#include "ostro/audit/record/amend.h"

namespace ostro::audit {

// Folders of a run directory, each with the beginning of another run's chain, and with such folders of that
// run: of the parent up to the entry that names the state, and of the run that made a published model.
inline constexpr const char* kParentFolder = "parent";
inline constexpr const char* kMakerFolder = "maker";

// The period that made the state after `step` steps: an amend of the same step comes behind it.
const Period& period_that_made(const std::vector<Period>& periods, int64_t step);

// The config of a fork after `step` steps: continue_with(), but where the data or their order are others the
// weights of components are those of `now` from the first step on. The result is resolved.
Result<train::TrainConfig> fork_with(const train::TrainConfig& before, const train::TrainConfig& now,
                                     int64_t step);

// Checks that a fork may go on with `after` from a state that `before` made. What an amend may change may
// change, and the data, their order, the length of sequences, the seed and the numerics too: the state does
// not depend on them. Error: kInvalidArgument with the options and both values.
Status check_fork(const train::TrainConfig& before, const train::TrainConfig& after, int64_t step);

// Checks that the chain at `where` has the entry that the fork's genesis names, and that this entry names the
// state that the fork began with. Error kCorrupt: with both values.
Status check_parent(const chain::GenesisEntry& fork, const chain::Chain& parent, const std::string& where);

// Copies into `to` (RUN/parent or RUN/maker) the chain in the directory `from` up to its entry of the hash
// `head`, and what that run has in its own two folders. What is there already is replaced.
Status copy_ancestry(io::FileSystem& fs, const std::string& from, const std::string& head,
                     const std::string& to);

}  // namespace ostro::audit
