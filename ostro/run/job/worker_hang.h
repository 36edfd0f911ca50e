// watch_for_hangs: ends a worker that hangs, after it has reported where, so that another worker can take its
// place.
#pragma once

#include <memory>

#include "ostro/base/watch/hang_watch.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// How long a step may stand still: trainer.hang_timeout if it is set, else 10 times the median step, and at
// least 30 seconds.
std::chrono::duration<double> hang_timeout(const train::TrainConfig& config);

// Watches this process. When it hangs, the stacks of its threads go to the log and to RUN/hang-PID.txt, and
// the process ends with kExitLostPlace. `config` must outlive it.
std::unique_ptr<HangWatch> watch_for_hangs(const train::TrainConfig& config);

}  // namespace ostro::run
