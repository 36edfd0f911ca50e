// info_of, taken_params: what an executable of a compiled Module tells and does alike in every engine.
//
// Pure functions; there are no errors.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/compile/plan/plan.h"
#include "ostro/runtime/buffer.h"

namespace ostro::compile {

// Without fallback_ops, which an engine knows.
runtime::ExecutableInfo info_of(const Module& module);

// Of each result the donated input whose memory it takes, or -1. An input of which another handle exists is
// left alone (runtime::CompileOptions::donate).
std::vector<int64_t> taken_params(const Plan& plan, const std::vector<runtime::Buffer>& inputs);

}  // namespace ostro::compile
