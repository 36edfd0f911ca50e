// `ostro train --dry_run`: what a run would use, without running it.
#pragma once

#include <string>

#include "ostro/data/build/build.h"
#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// Parameters, leaves, what each worker holds and sends, memory, FLOPs and data, as text for a person. Builds
// the token store when it is missing.
Result<std::string> dry_run(io::FileSystem& fs, runtime::Engine& engine, const TrainConfig& config,
                            int64_t workers, const data::BuildSettings& build);

}  // namespace ostro::train
