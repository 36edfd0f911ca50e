// missing_state: the error about a state that a run does not have: which states are near, and what it takes
// to make it.
#pragma once

#include <string>

#include "ostro/chain/chain.h"
#include "ostro/io/files/file_system.h"

namespace ostro::run {

// kInvalidArgument: the chain of the run in the directory `run` names no state of this step. It names the
// states before and behind it, the steps from the one before (or from the beginning) and their time by
// run.json. `asked`: what the user called the step ("--step", "at").
Error missing_state(io::FileSystem& fs, const std::string& run, const chain::Chain& chain, int64_t step,
                    const std::string& asked);

}  // namespace ostro::run
