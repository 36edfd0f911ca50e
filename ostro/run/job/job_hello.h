// job_hello: how a worker of a run introduces itself to the coordinator. The coordinator expects the same
// values of all workers.
#pragma once

#include <chrono>

#include "ostro/base/error.h"
#include "ostro/cluster/epoch.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// The run, host and process, and the values that must be equal in all workers: the numerics version, every
// option of the canonical config, the mesh, and `place`. `place` is the content of the run's place file, as
// this process sees it.
cluster::Hello job_hello(const train::TrainConfig& config, const std::string& place);

// A file of the run directory with a random text. Two processes that read the same text see the same
// directory; a host without the shared file system does not. place_of_run() makes the file if it is not
// there. find_place_of_run() waits for it; "" when it does not come.
inline constexpr const char* kPlaceFile = "coordinator.place";
Result<std::string> place_of_run(const std::string& directory);
std::string find_place_of_run(io::FileSystem& fs, const std::string& directory,
                              std::chrono::milliseconds patience);

}  // namespace ostro::run
