// The plan that a compiled engine would run, for those who explain or measure it.
#pragma once

#include "ostro/compile/plan/plan.h"
#include "ostro/runtime/engine.h"

namespace ostro::cpu {

// What `engine` would run for the program with these options: lowered by itself, for its instruction set,
// with its kernels and tiles. `reasons` fills Step::not_fused. Error: an engine that make_cpu_engine did not
// make, or the compiler's.
Result<compile::Module> plan_of(runtime::Engine& engine, const ir::Program& program,
                                const runtime::CompileOptions& options, bool reasons);

}  // namespace ostro::cpu
