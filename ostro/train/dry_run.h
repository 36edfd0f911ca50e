// `ostro train --dry_run`: what a run would use, without running it.
#pragma once

#include <string>

#include "ostro/io/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/config.h"

namespace ostro::train {

// Parameters, leaves, memory, FLOPs, data and schedule, as text for a person. Builds the token store when it
// is missing.
Result<std::string> dry_run(io::FileSystem& fs, runtime::Engine& engine, const TrainConfig& config);

}  // namespace ostro::train
