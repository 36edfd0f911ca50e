// plan_memory, plan_donation: the memory planner, which gives each temporary buffer of a plan a place in the
// arena or in a result, by lifetime.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// Fills PlanBuffer::offset of temporaries and plan.arena_bytes. A buffer lives from the first to the last
// step that touches it, and longer if an exchange uses it (Step::held_open). Buffers whose lifetimes do not
// overlap may share memory. A pointwise step may overwrite an operand of the same shape that no later step
// reads, a step with Step::overwrites its first operand. Nested plans are planned before: the arena of each
// is one buffer of this plan. With `in_results`, a temporary may also lie in a result that is written only
// after the temporary's life ends (PlanBuffer::host). So residuals and the tiles of a head can use the memory
// of gradients that are written later. A result that reuses a parameter's memory is not used for this
// (plan_donation, which runs first).
void plan_memory(Plan& plan, bool in_results = false);

// Finds, for each donated parameter, a result that may use its memory. Either no step reads the parameter
// once the result's first step runs, or that step is pointwise and reads each element of the parameter just
// where it writes, or it overwrites its first operand, which is the parameter. Fills
// PlanBuffer::reuses_param.
void plan_donation(Plan& plan, const std::vector<int64_t>& donate);

}  // namespace ostro::compile
