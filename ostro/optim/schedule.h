// Learning rate as a pure function of the step, in f64 with functions of numerics::.
#pragma once

#include <cstdint>

#include "ostro/optim/options.h"

namespace ostro::optim {

// The rate of step `step` (0-based, < num_train_steps): step / warmup of the peak while step < warmup, then
// the schedule over what is left of the run; with `decay` set, the peak until the last `decay` steps and the
// schedule over these. Never below min_lr_ratio of the peak after warm-up.
double learning_rate(const AdamOptions& options, int64_t step, int64_t num_train_steps);

}  // namespace ostro::optim
