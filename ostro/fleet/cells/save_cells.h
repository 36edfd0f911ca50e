// CellSnapshot, SharedSave: a checkpoint that all workers write together, each its own cells, with the bytes
// that one process writes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ostro/checkpoint/async_saver.h"
#include "ostro/checkpoint/save_parts.h"
#include "ostro/dist/key_value.h"
#include "ostro/fleet/workers/worker_plan.h"

namespace ostro::fleet {

// What one worker has of a state to be saved. It shares the memory of the state's cells.
struct CellSnapshot {
  checkpoint::Info info;
  std::vector<checkpoint::TensorSpec> tensors;  // of the whole state
  std::vector<checkpoint::CellData> cells;      // that this worker writes
  // That another worker writes, and this one could. For deal_again().
  std::vector<checkpoint::CellData> spare;
};

// Called by all workers, with what each owns after the same step. A checkpoint's cell is written by the first
// worker that owns it. One of which several workers own a part, because numerics.cells does not cut there, is
// sent to one of them. `mirror` is the worker's copy of what plan.mirror_of(rank) owns of plan.mirrored.
// `boxes` are the config's cells (cell_boxes); only worker 0's `info` counts. The memory of `owned` and
// `mirror` must not be written to as long as the snapshot lives.
Result<CellSnapshot> snapshot_cells(const WorkerPlan& plan, runtime::Collectives& group,
                                    const train::State& owned, const train::State& mirror,
                                    const optim::Boxes& boxes, const checkpoint::Info& info);

// When a worker was lost before a checkpoint was complete: called by all workers of the new group, each with
// what it still has of it, or null. Every cell goes to the first worker that has it. Returns what this worker
// writes now; no tensors if no worker has any. kNotFound: a cell is at no worker any more.
Result<CellSnapshot> deal_again(runtime::Collectives& group, int64_t step, const CellSnapshot* mine);

// The place of a checkpoint. All workers see the same files below `root`.
struct SharedSave {
  io::FileSystem* fs = nullptr;
  std::string root;
  dist::KeyValue* store = nullptr;  // through which the workers tell each other how far they are
  std::string key;                  // begins the keys of this save; no other save has it
  int64_t rank = 0, size = 1;
  // Called when the folder of the checkpoint is removed while it is written: has the epoch end, so that the
  // workers write it again. Empty: that is an error as any other.
  std::function<void(const std::string& why)> removed = {};
  // Called on a worker other than 0 that cannot write its cells: it is to leave the others, who then write
  // them. Empty: it tells worker 0, whose save fails.
  std::function<void(const Error& error)> cannot_write = {};
};

// Gets the snapshot back when a save did not come to its end. Read it after AsyncSaver::wait().
struct UnfinishedSave {
  std::shared_ptr<const CellSnapshot> snapshot;
};

// To be run in the background (AsyncSaver::start), by worker 0 and by the others. Worker 0 makes the
// directory, waits until all have written and synced their cells, and writes the manifest; the others wait
// until it has. Errors name the worker and the file; the checkpoints before are as they were. `unfinished`
// may be null, and must outlive the save.
checkpoint::AsyncSaver::Write lead_save(SharedSave save, CellSnapshot snapshot,
                                        UnfinishedSave* unfinished = nullptr);
checkpoint::AsyncSaver::Write join_save(SharedSave save, CellSnapshot snapshot,
                                        UnfinishedSave* unfinished = nullptr);

}  // namespace ostro::fleet
