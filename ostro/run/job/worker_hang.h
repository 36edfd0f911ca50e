// What a worker does when it hangs: it says where, and leaves, so that another can take its place.
#pragma once

#include <memory>

#include "ostro/base/watch/hang_watch.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// For how long a step may stand still: trainer.hang_timeout, or 30 seconds, or 10 times the median step.
std::chrono::duration<double> hang_timeout(const train::TrainConfig& config);

// Watches this process. When it hangs, the stacks of its threads go to the log and to RUN/hang-PID.txt, and
// the process ends with kExitLostPlace. `config` must outlive it.
std::unique_ptr<HangWatch> watch_for_hangs(const train::TrainConfig& config);

}  // namespace ostro::run
