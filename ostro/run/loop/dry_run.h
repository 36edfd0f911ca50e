// dry_run: computes what a run would use, without running it, for `ostro train --dry_run`.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/prepare/store/build.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// What all steps of a run take together.
struct Cost {
  double flops = 0;    // of the programs of all steps, without evaluation
  double seconds = 0;  // if they reach half of the machine's peak; 0 where that is not known
  int64_t memory = 0;  // bytes, at the peak of a process that trains alone
  int64_t files = 0;   // bytes of the checkpoints that are kept for good
};

struct DryRun {
  // A text for people: parameters, leaves, memory and communication of each worker, FLOPs, data, time, and
  // the number of steps that an audit has to replay to check one.
  std::string text;
  Cost cost;
  int64_t state = 0;        // bytes of the arrays of a checkpoint
  double step_seconds = 0;  // estimated; 0: not known
  Status fits;  // the result of check_fit() on one worker, of fleet::check_device_room() on several
};

// Computes it. Builds the token store if it does not exist; does no step. Errors: those of the config, the
// data and of compiling. `sharers`: how many of the workers share the memory of the engine's device.
// `from_step`: the steps from which on leaves have the config's size, of an amended run. `slices`: the name
// of each worker's slice; empty: one.
Result<DryRun> dry_run(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config,
                       int64_t workers, int64_t sharers, const data::BuildSettings& build,
                       int64_t from_step = 0, const std::vector<std::string>& slices = {});

}  // namespace ostro::run
