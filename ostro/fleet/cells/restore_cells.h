// restore_cells: all workers read a checkpoint together, each its own cells.
#pragma once

#include <string>
#include <vector>

#include "ostro/checkpoint/restore.h"
#include "ostro/fleet/workers/worker_plan.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/train/step/live_state.h"

namespace ostro::fleet {

// What worker `rank` owns of the state in a checkpoint, which any number of workers has written. Every byte
// is checked against the manifest: ErrorCode::kCorrupt, or kIo, names what is damaged. kInvalidArgument: the
// checkpoint is of another model.
Result<train::State> read_cells(const checkpoint::Checkpoint& checkpoint, const WorkerPlan& plan,
                                int64_t rank);

// What `cells`, which `rank` owns, adds to the fingerprint of each parameter (numerics.md N14): the sum over
// all first holders is the fingerprint. Reads once more what lies across the borders of words.
Result<std::vector<numerics::Fingerprint>> fingerprint_cells(const checkpoint::Checkpoint& checkpoint,
                                                             const WorkerPlan& plan, int64_t rank,
                                                             const train::State& cells);

// Called by all workers with the same directory. `cells` becomes what this worker owns if all could read what
// they own; else CellsRead::unfit says why this checkpoint cannot be used, with the worker. All get the same
// answer. Errors: another model; the workers see different files.
Result<train::CellsRead> restore_cells(const WorkerPlan& plan, runtime::Collectives& group,
                                       io::FileSystem& fs, const std::string& path, bool prints,
                                       train::State& cells);

}  // namespace ostro::fleet
