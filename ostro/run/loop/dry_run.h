// `ostro train --dry_run`: what a run would use, without running it.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/prepare/store/build.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

struct DryRun {
  // For people: parameters, leaves, memory and communication of each worker, FLOPs, data, time,
  // and from how far back an audit replays a step.
  std::string text;
  Status fits;  // of check_fit(), on one worker
};

// Builds the token store if it does not exist. No step is done.
Result<DryRun> dry_run(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config,
                       int64_t workers, const data::BuildSettings& build);

}  // namespace ostro::run
