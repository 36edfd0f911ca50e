// job_hello: the description by which a worker of a run introduces itself to the coordinator.
#pragma once

#include <chrono>

#include "ostro/base/error.h"
#include "ostro/cluster/messages/epoch.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// Returns the run, host and process, and the values that the coordinator compares, which must be equal in all
// workers: the numerics version, every option of the canonical config, the mesh, and `place`. `place` is the
// content of the run's place file, as this process sees it.
cluster::Hello job_hello(const train::TrainConfig& config, const std::string& place);

// The place file: a file of the run directory with a random text. Two processes that read the same text see
// the same directory; a host without the shared file system does not. place_of_run() returns the text, and
// makes the file if it is missing; errors are those of reading and writing. find_place_of_run() waits for the
// file, at most for `patience`; "" when it does not come.
inline constexpr const char* kPlaceFile = "coordinator.place";
Result<std::string> place_of_run(const std::string& directory);
std::string find_place_of_run(io::FileSystem& fs, const std::string& directory,
                              std::chrono::milliseconds patience);

}  // namespace ostro::run
