// What rematerialisation would give: memory and arithmetic of a step under each policy.
#pragma once

#include <string>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// "keep", "none", "all", "save:x" for every label x in the leaf program's loops, and `configured` when it is
// another.
std::vector<std::string> remat_policies(const CanonicalPrograms& programs, const std::string& configured);

// Bytes that a worker has at most during a step, without evaluation, batches and checkpoints that are being
// written: its parameters and moments, the live sums of gradients, the arenas of the leaf and update
// programs.
int64_t peak_bytes(const WorkerLoad& load, int64_t workers, int64_t leaf_arena, int64_t update_arena);

// A table for people, one line a policy; nothing is compiled to code.
Result<std::string> remat_table(const CanonicalPrograms& programs, runtime::Engine& engine,
                                const std::string& configured, const WorkerLoad& load, int64_t workers,
                                int64_t update_arena);

}  // namespace ostro::train
