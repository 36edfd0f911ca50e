// OSTRO_SIM_WORKERS: data-parallel workers simulated in this process. Never changes a bit.
#pragma once

#include <cstdint>

#include "ostro/base/error.h"

namespace ostro::cli {

// The number, 1 when unset or empty; anything but 1 .. 1024 is ErrorCode::kInvalidArgument.
Result<int64_t> sim_workers();

}  // namespace ostro::cli
