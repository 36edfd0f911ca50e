// restore_cells: all workers read a checkpoint together, each its own cells.
#pragma once

#include <string>
#include <vector>

#include "ostro/checkpoint/restore.h"
#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/train/step/live_state.h"

namespace ostro::fleet {

// Reads the cells of a checkpoint's state that worker `rank` owns. Any number of workers may have written it.
// Every byte is checked against the manifest. Errors: kCorrupt or kIo, with what is damaged; kInvalidArgument
// when the checkpoint is of another model.
Result<train::State> read_cells(const checkpoint::Checkpoint& checkpoint, const WorkerPlan& plan,
                                int64_t rank);

// Returns the share of `cells`, which `rank` owns, in the fingerprint of each parameter (numerics.md N14):
// the sum over all first holders is the fingerprint. Reads elements again whose word of the fingerprint is
// cut by the border of a cell.
Result<std::vector<numerics::Fingerprint>> fingerprint_cells(const checkpoint::Checkpoint& checkpoint,
                                                             const WorkerPlan& plan, int64_t rank,
                                                             const train::State& cells);

// All workers call it with the same directory. If all could read their cells, `cells` becomes the cells of
// this worker; otherwise CellsRead::unfit says why this checkpoint cannot be used, and which worker found it.
// All get the same answer. `prints`: also compute the fingerprints of the parameters. Errors: the checkpoint
// is of another model; the workers see different files; those of the collectives.
Result<train::CellsRead> restore_cells(const WorkerPlan& plan, runtime::Collectives& group,
                                       io::FileSystem& fs, const std::string& path, bool prints,
                                       train::State& cells);

}  // namespace ostro::fleet
