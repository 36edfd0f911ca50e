// plan_amend: what `ostro train --amend` would change in a run, without changing it.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/prepare/store/build.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

struct AmendPlan {
  int64_t step = 0;           // steps done where the amend would stand
  train::TrainConfig config;  // with which the run would go on
  std::string text;           // for people: a line for each change, and for each component that is added
};

// Compares `given` with the run in its run directory, as resuming with an amend does. Builds token stores
// that are not there; takes no lock and writes nothing into the run directory. Errors: there is no run, or it
// cannot be amended so (audit::check_amend), and those of plan_resume and of the data.
Result<AmendPlan> plan_amend(io::FileSystem& fs, const train::TrainConfig& given,
                             const data::BuildSettings& build);

}  // namespace ostro::run
