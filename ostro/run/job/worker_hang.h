// watch_for_hangs: ends a worker that hangs, after it has reported where, so that another worker can take its
// place.
#pragma once

#include <memory>

#include "ostro/base/watch/hang_watch.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// Watches this process. When it hangs (hang_limit, time_limits.h), the stacks of its threads go to the log
// and to RUN/hang-PID.txt, and the process ends with kExitLostPlace. `config` must outlive it.
std::unique_ptr<HangWatch> watch_for_hangs(const train::TrainConfig& config);

}  // namespace ostro::run
