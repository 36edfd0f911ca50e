// info_of, taken_params: the parts of an executable of a compiled Module that are alike in every engine.
//
// Pure functions; there are no errors.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/compile/plan/plan.h"
#include "ostro/runtime/buffer.h"

namespace ostro::compile {

// The info of a module, without fallback_ops, which only an engine knows.
runtime::ExecutableInfo info_of(const Module& module);

// Returns for each result the number of the donated input whose memory it takes, or -1. An input of which
// another handle exists is not taken (runtime::CompileOptions::donate).
std::vector<int64_t> taken_params(const Plan& plan, const std::vector<runtime::Buffer>& inputs);

}  // namespace ostro::compile
