// CellWork: the work of one worker on its part of a state: making, reading, saving and evaluating it. All
// workers of a group call the same function at the same point. Errors: those of the functions named below.
// Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/fleet/cells/evaluate_cells.h"
#include "ostro/fleet/cells/restore_cells.h"
#include "ostro/fleet/cells/save_cells.h"
#include "ostro/fleet/workers/worker.h"

namespace ostro::fleet {

class CellWork {
 public:
  // `boxes` are the config's (cell_boxes). `plan` and `worker` must outlive it.
  CellWork(const WorkerPlan& plan, Worker& worker, optim::Boxes boxes)
      : plan_(plan), worker_(worker), boxes_(std::move(boxes)) {}

  // Makes the worker adopt its cells of the state at step 0 (initial_cells).
  Status begin(runtime::Collectives& group, int64_t seed);
  // Makes the worker adopt its cells of a checkpoint (restore_cells).
  Result<train::CellsRead> restore(runtime::Collectives& group, io::FileSystem& fs, const std::string& path,
                                   bool prints);
  // The part of a checkpoint that the worker writes (snapshot_cells).
  Result<CellSnapshot> snapshot(runtime::Collectives& group, const checkpoint::Info& info = {}) const;
  // The losses of all batches (CellEvaluator).
  Result<std::vector<train::BatchLoss>> evaluate(runtime::Collectives& group, const train::HeldOutText& text,
                                                 const ir::Program& program);

 private:
  Status adopt(runtime::Collectives& group, train::State state);

  const WorkerPlan& plan_;
  Worker& worker_;
  optim::Boxes boxes_;
  std::optional<CellEvaluator> evaluator_;
};

}  // namespace ostro::fleet
