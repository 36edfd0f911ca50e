// learning_rate: the learning rate as a pure function of the step, in f64 with functions of numerics::.
#pragma once

#include <cstdint>

#include "ostro/optim/options.h"

namespace ostro::optim {

// The rate of step `step` (0-based, < num_train_steps). In a cycle (a run without cycles is one): while step
// < warmup it is step / warmup of the peak, in a later cycle it rises from the last rate of the one before.
// Then the schedule runs over the rest of the run. With `decay` set, the rate stays at the peak until the
// last `decay` steps, and the schedule runs over these. After warm-up it is never below min_lr_ratio of the
// peak.
double learning_rate(const CommonOptions& options, int64_t step, int64_t num_train_steps);

}  // namespace ostro::optim
