// The memory planner: gives every temporary buffer of a plan its place in the arena by lifetime.
#pragma once

#include "ostro/compile/plan.h"

namespace ostro::compile {

// Fills PlanBuffer::offset of temporaries and plan.arena_bytes. Buffers whose lifetimes (first to last step
// that touches them) do not meet may share memory. Nested plans are already planned: their arena is one of this
// plan's buffers.
void plan_memory(Plan& plan);

}  // namespace ostro::compile
