// Machine limits: what a plan's times are compared with.
#pragma once

#include "ostro/compile/plan/explain_plan.h"

namespace ostro::engines {

// Measures what this machine can do, with the threads (OSTRO_THREADS) and the instruction set (OSTRO_ISA)
// that the compiled engine would use; takes less than a second. Error: a variable that makes no sense.
Result<compile::MachineLimits> machine_limits();

}  // namespace ostro::engines
