// run_files: the file system through which a process trains one run.
#pragma once

#include <memory>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// With trainer.scratch_dir, and a run directory in an object store: `fs` with scratch in front of it
// (checkpoint/scratch.h), for a process of its own place there. `fs` must outlive it. Otherwise null; says so
// where the option is of no use, because the run is on a disk.
std::shared_ptr<io::FileSystem> scratch_files(io::FileSystem& fs, const TrainConfig& config);

}  // namespace ostro::train
