// remat_table: the table of `--dry_run` with memory and FLOPs of a step under each rematerialisation policy.
// Errors are those of planning the programs on the engine.
#pragma once

#include <string>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// The policies of the table: "keep", "none", "all", and "save:x" for every label x in the loops of the leaf
// program. `configured` is added if it is not one of these.
std::vector<std::string> remat_policies(const CanonicalPrograms& programs, const std::string& configured);

// Peak memory of a worker during a step, in bytes: its parameters and moments, the partial sums of gradients
// that are alive at one time, and the arenas of the leaf and update programs. Evaluation, data batches and
// checkpoints that are being written are not included.
int64_t peak_bytes(const WorkerLoad& load, int64_t leaf_arena, int64_t update_arena);

// The table as text, one line per policy. `leaf` is the leaf program as the worker of the load runs it.
// Programs are only planned; no code is compiled.
Result<std::string> remat_table(const CanonicalPrograms& programs, runtime::Engine& engine,
                                const ir::Program& leaf, const std::string& configured,
                                const WorkerLoad& load, int64_t update_arena);

}  // namespace ostro::train
