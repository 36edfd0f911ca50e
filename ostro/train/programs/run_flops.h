// run_flops: the arithmetic of a run, counted from its canonical programs, so that it is the same number on
// every engine, machine and mesh. Pure functions.
#pragma once

#include "ostro/train/programs/programs.h"

namespace ostro::train {

// The floating-point operations of one execution of a program, a multiply and an add counting one each.
double program_flops(const ir::Program& program);

// The floating-point operations of the first `steps` steps, a multiply and an add counting one each: forward
// and backward pass with the head, and the update; without evaluation and without recomputation.
double run_flops(const CanonicalPrograms& programs, const TrainConfig& config, int64_t steps);

// The largest number of steps whose operations do not exceed `flops`, at most kMostStepsWithin; 0 if the
// first does.
inline constexpr int64_t kMostStepsWithin = (int64_t{1} << 40) - 1;
int64_t steps_within(const CanonicalPrograms& programs, const TrainConfig& config, double flops);

// The tokens in the batches of the first `steps` steps, repeated and padded ones included; INT64_MAX where
// they are more.
int64_t tokens_of(const TrainConfig& config, int64_t steps);

}  // namespace ostro::train
