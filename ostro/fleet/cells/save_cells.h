// CellSnapshot, SharedSave: a checkpoint that all workers write together, each its own cells, with the bytes
// that one process would write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ostro/checkpoint/async_saver.h"
#include "ostro/checkpoint/save_parts.h"
#include "ostro/dist/key_value.h"
#include "ostro/fleet/plan/worker_plan.h"

namespace ostro::fleet {

// The part of a state to be saved that one worker has. It shares the memory of the state's cells.
struct CellSnapshot {
  checkpoint::Info info;
  std::vector<checkpoint::TensorSpec> tensors;  // of the whole state
  std::vector<checkpoint::CellData> cells;      // the cells that this worker writes
  // Cells that another worker writes, and of which this one has a copy; for deal_again().
  std::vector<checkpoint::CellData> spare;
};

// Makes the snapshot of one worker. All workers call it, with the cells `owned` that each has after the same
// step. The first worker that owns a cell of the checkpoint writes it. A cell of which several workers own a
// part, because numerics.cells does not cut there, is sent to one of them. `mirror` is this worker's copy of
// the cells of plan.mirrored that plan.mirror_of(rank) owns. `boxes` are the config's cells (cell_boxes);
// only the `info` of worker 0 counts. The memory of `owned` and `mirror` must not be written to while the
// snapshot lives. Errors: those of the collectives.
Result<CellSnapshot> snapshot_cells(const WorkerPlan& plan, runtime::Collectives& group,
                                    const train::State& owned, const train::State& mirror,
                                    const optim::Boxes& boxes, const checkpoint::Info& info);

// Divides the cells of a checkpoint anew, after a worker was lost before it was complete. All workers of the
// new group call it, each with its snapshot of that checkpoint, or null. The first worker that has a cell
// writes it. Returns what this worker writes now; a snapshot without tensors if no worker has any. Errors:
// kNotFound when no worker has a cell any more; those of the collectives.
Result<CellSnapshot> deal_again(runtime::Collectives& group, int64_t step, const CellSnapshot* mine);

// The place of a checkpoint. All workers see the same files below `root`.
struct SharedSave {
  io::FileSystem* fs = nullptr;
  std::string root;
  dist::KeyValue* store = nullptr;  // the workers tell each other through it how far they are
  std::string key;                  // begins the keys of this save; no other save has it
  int64_t rank = 0, size = 1;
  // Called when the folder of the checkpoint is removed while it is written; it must end the epoch, so that
  // the workers write the checkpoint again. Empty: the save fails.
  std::function<void(const std::string& why)> removed = {};
  // Called on a worker other than 0 that cannot write its cells. The worker must then leave the others, and
  // they write its cells. Empty: the save of worker 0 fails.
  std::function<void(const Error& error)> cannot_write = {};
};

// Holds the snapshot of a save that did not finish. Read it after AsyncSaver::wait().
struct UnfinishedSave {
  std::shared_ptr<const CellSnapshot> snapshot;
};

// Return the work of a save, for AsyncSaver::start: lead_save for worker 0, join_save for the others. Worker
// 0 makes the directory, waits until all have written and synced their cells, and writes the manifest; the
// others wait until it has. Errors name the worker and the file; earlier checkpoints are not changed.
// `unfinished` may be null, and must outlive the save.
checkpoint::AsyncSaver::Write lead_save(SharedSave save, CellSnapshot snapshot,
                                        UnfinishedSave* unfinished = nullptr);
checkpoint::AsyncSaver::Write join_save(SharedSave save, CellSnapshot snapshot,
                                        UnfinishedSave* unfinished = nullptr);

}  // namespace ostro::fleet
