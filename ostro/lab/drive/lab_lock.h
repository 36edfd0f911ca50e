// lock_lab: one process at a time writes to a lab.
#pragma once

#include <memory>

#include "ostro/experiment/plan/plan.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lab {

// Makes the lab's folder and locks it until the lock is destroyed. Errors: another process has it, which the
// message names.
Result<std::unique_ptr<io::FileLock>> lock_lab(io::FileSystem& fs, const Plan& plan);

}  // namespace ostro::lab
