// check_copies: whether all workers that have the same cells of a state have the same bytes of them
// (trainer.cross_check): the owners, and the workers that keep copies.
#pragma once

#include "ostro/fleet/workers/worker.h"

namespace ostro::fleet {

// All workers call it after a step, with the cells that they own and the copies that they keep, of drawn
// arrays of the state. Fills in `checks`. Errors: kIo when copies differ, with checks.disagreement, at all
// workers; those of the collectives and of the memory.
Status check_copies(const WorkerPlan& plan, runtime::Collectives& c, const Cells& own, const Cells& mirror,
                    StepChecks& checks);

}  // namespace ostro::fleet
