// dry_run: computes what a run would use, without running it, for `ostro train --dry_run`.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/prepare/store/build.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

struct DryRun {
  // A text for people: parameters, leaves, memory and communication of each worker, FLOPs, data, time, and
  // the number of steps that an audit has to replay to check one.
  std::string text;
  Status fits;  // the result of check_fit() on one worker, of fleet::check_device_room() on several
};

// Computes it. Builds the token store if it does not exist; does no step. Errors: those of the config, the
// data and of compiling. `sharers`: how many of the workers share the memory of the engine's device.
Result<DryRun> dry_run(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config,
                       int64_t workers, int64_t sharers, const data::BuildSettings& build);

}  // namespace ostro::run
