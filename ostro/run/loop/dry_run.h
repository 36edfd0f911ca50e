// `ostro train --dry_run`: what a run would use, without running it.
#pragma once

#include <string>

#include "ostro/data/build/build.h"
#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// A report for people: parameters, leaves, memory and communication of each worker, FLOPs and data. Builds
// the token store if it does not exist.
Result<std::string> dry_run(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config,
                            int64_t workers, const data::BuildSettings& build);

}  // namespace ostro::run
