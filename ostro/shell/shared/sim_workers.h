// OSTRO_SIM_WORKERS: the number of data-parallel workers that are simulated in this process. It never changes
// a bit.
#pragma once

#include <cstdint>

#include "ostro/base/error.h"

namespace ostro::cli {

// The number of workers; 1 if the variable is unset or empty. Error: kInvalidArgument for anything but 1 to
// 1024.
Result<int64_t> sim_workers();

}  // namespace ostro::cli
