// CellWork: what one worker does with its part of a state: making it, reading and saving it, evaluating it.
// Every function is called by all workers of a group at the same point.
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

  // The worker adopts its cells of the state at step 0 (initial_cells).
  Status begin(runtime::Collectives& group, int64_t seed);
  // Or of a checkpoint (restore_cells).
  Result<train::CellsRead> restore(runtime::Collectives& group, io::FileSystem& fs, const std::string& path,
                                   bool prints);
  // What the worker writes of a checkpoint of its state (snapshot_cells).
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
