// The memory planner: gives every temporary buffer of a plan its place by lifetime, in the arena or a result.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// Fills PlanBuffer::offset of temporaries and plan.arena_bytes. Buffers whose lifetimes (first to last step
// that touches them) do not meet may share memory; a pointwise step writes over an operand of the same
// shape that nothing reads later. Nested plans are already planned: their arena is one of
// this plan's buffers. With `in_results` a temporary whose life ends before a result's first step may lie in
// that result (PlanBuffer::host), unless it takes a parameter's memory (plan_donation, which runs first):
// residuals and the tiles of a head take the place of gradients to come.
void plan_memory(Plan& plan, bool in_results = false);

// Finds for each parameter that is given away a result that may lie in its memory: no step reads the
// parameter after the result's first step, or that step is pointwise and reads it at the very place it
// writes. Fills PlanBuffer::reuses_param.
void plan_donation(Plan& plan, const std::vector<int64_t>& donate);

}  // namespace ostro::compile
