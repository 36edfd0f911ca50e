// Which Engine a command runs on: the process-wide OSTRO_EXECUTOR. It never changes a bit.
#pragma once

#include <memory>

#include "ostro/runtime/engine.h"

namespace ostro::cli {

// OSTRO_EXECUTOR=compiled (also when unset or empty) or interpreter; anything else is
// ErrorCode::kInvalidArgument. The compiled engine heeds OSTRO_ISA and OSTRO_THREADS
// (ostro/cpu/engine/engine.h); the interpreter is plain scalar code on one thread and has no use for them.
Result<std::unique_ptr<runtime::Engine>> make_engine();

// The same engine without generated code: slower, but for programs that run only a few times there is nothing
// to compile first.
Result<std::unique_ptr<runtime::Engine>> make_engine_for_a_moment();

}  // namespace ostro::cli
