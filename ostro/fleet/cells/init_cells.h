// initial_cells: makes the state before the first step, each worker its own cells.
#pragma once

#include "ostro/fleet/plan/worker_plan.h"

namespace ostro::fleet {

// Returns the cells of the state at step 0 that worker `rank` owns: parameters with the bits that the init
// program gives, and moments of zeros. An init program that sums over an axis is run whole by every worker,
// which then keeps its cells. `group` may be null if the program needs no other worker, for instance if it
// only draws random numbers. Errors: those of the program and of the collectives.
Result<train::State> initial_cells(const WorkerPlan& plan, int64_t rank, int64_t seed,
                                   runtime::Collectives* group);

}  // namespace ostro::fleet
