// One process on one run directory.
#pragma once

#include <memory>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::train {

inline constexpr const char* kLockFile = "lock";

// Takes the run directory's lock (released when the object goes or the process ends) and writes who holds it:
// process, host, time, and the epoch: how often the run was started, this time included. Held by another:
// ErrorCode::kBusy with the other's text.
Result<std::unique_ptr<io::FileLock>> lock_run(io::FileSystem& fs, const std::string& run_directory,
                                               int64_t epoch);

}  // namespace ostro::train
