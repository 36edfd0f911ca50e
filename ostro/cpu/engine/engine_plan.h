// The plan that the compiled engine would run, for tools that explain or measure it.
#pragma once

#include "ostro/compile/plan/plan.h"
#include "ostro/runtime/engine.h"

namespace ostro::cpu {

// What `engine` would run for the program with these options: the program lowered for the engine's
// instruction set, with its kernels and tiles. `reasons`: fill Step::not_fused. Error: the engine was not
// made by make_cpu_engine, or the program cannot be compiled.
Result<compile::Module> plan_of(runtime::Engine& engine, const ir::Program& program,
                                const runtime::CompileOptions& options, bool reasons);

}  // namespace ostro::cpu
