// A checkpoint that all workers write together, each its own cells, with the bytes that one process writes.
#pragma once

#include <string>
#include <vector>

#include "ostro/checkpoint/async_saver.h"
#include "ostro/checkpoint/save_parts.h"
#include "ostro/dist/key_value.h"
#include "ostro/train/workers/worker_plan.h"

namespace ostro::train {

// What one worker writes of a checkpoint.
struct CellSnapshot {
  std::vector<checkpoint::TensorSpec> tensors;  // of the whole state
  std::vector<checkpoint::CellData> cells;
};

// Called by all workers, with what each owns after the same step. A checkpoint's cell is written by the first
// worker that owns it. One of which several workers own a part, because numerics.cells does not cut there, is
// sent to one of them. `boxes` are the config's cells (cell_boxes). The snapshot shares the memory of
// `owned`, which must not be written to as long as it lives.
Result<CellSnapshot> snapshot_cells(const WorkerPlan& plan, runtime::Collectives& group, const State& owned,
                                    const optim::Boxes& boxes);

// The place of a checkpoint. All workers see the same files below `root`.
struct SharedSave {
  io::FileSystem* fs = nullptr;
  std::string root;
  dist::KeyValue* store = nullptr;  // through which the workers tell each other how far they are
  std::string key;                  // begins the keys of this save; no other save has it
  int64_t rank = 0, size = 1;
};

// To be run in the background (AsyncSaver::start), by worker 0 and by the others. Worker 0 makes the
// directory, waits until all have written and synced their cells, and writes the manifest. Errors name the
// worker and the file; the checkpoints before are as they were.
checkpoint::AsyncSaver::Write lead_save(SharedSave save, checkpoint::Info info, CellSnapshot snapshot);
checkpoint::AsyncSaver::Write join_save(SharedSave save, CellSnapshot snapshot);

}  // namespace ostro::train
