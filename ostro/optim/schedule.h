// learning_rate: the learning rate of a step (docs/reference/optimizers.md). A pure function in f64, with the
// functions of numerics::, so its bits are the same on every machine.
#pragma once

#include <cstdint>

#include "ostro/optim/options.h"

namespace ostro::optim {

// Returns the rate of step `step`, 0 <= step < num_train_steps. A run consists of cycles, of one where the
// options name none. A cycle begins with a warm-up: in the first cycle the rate of step s is s / warmup times
// the peak; in a later one it rises to the peak from the last rate of the cycle before. After the warm-up the
// schedule lets it fall until the end of the cycle, never below min_lr_ratio of the peak. With `decay` set,
// the rate first stays at the peak, and the schedule runs over the last `decay` steps of the cycle.
//
// With schedule_from S the rate of step S + i is that of step i of a run of num_train_steps - S steps. Steps
// before S have the rate of step S. With warmup_from the first warm-up rises from that rate instead of 0.
double learning_rate(const CommonOptions& options, int64_t step, int64_t num_train_steps);

}  // namespace ostro::optim
