// planned_blocks: what a program keeps in the memory of a device from its first run on, beside its arena:
// constants, index tables and the working memory of ops.
//
// The plan is walked as a run walks it, on a device that has addresses only: nothing is compiled, launched or
// copied. So every routine asks for what it asks for in a run. Of a branch both sides are walked. Steps that
// exchange with other workers, or look at pages, keep nothing, and are left out. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/compile/plan/plan.h"
#include "ostro/cuda/steps/kernels.h"

namespace ostro::cuda {

// `kernels`: those that will run the module; `program`: its name. In bytes, as the memory of their device
// takes them. Error: an op or a size that the device does not take.
Result<int64_t> planned_blocks(const compile::Module& module, const std::string& program,
                               const Kernels& kernels);

}  // namespace ostro::cuda
