// Data-parallel workers, simulated in one process: each runs the leaf program on its own rows, ships sums of
// whole subtrees of leaves to the owners of the parameters' cells, which join them by the one tree over
// leaves, update their cells and send the new parameters to all. The same bits as one worker.
#pragma once

#include <memory>
#include <string>

#include "ostro/spmd/layout.h"
#include "ostro/train/step/step.h"
#include "ostro/train/workers/worker.h"

namespace ostro::train {

struct WorkerOptions {
  int64_t workers = 1;
  // numerics.cells: parameters are owned by cells along these axes, else along "embed"; arrays with none of
  // them are held and updated by every owner.
  spmd::Cells cells;
  WorkerFault fault = WorkerFault::kNone;
};

// Every worker has its own executables of `engine`, which must be thread-safe and live as long as the runner.
Result<std::unique_ptr<StepRunner>> make_worker_runner(const CanonicalPrograms& programs,
                                                       runtime::Engine& engine, const std::string& remat,
                                                       const WorkerOptions& options);

// What a run steps with: make_step_runner for one worker, make_worker_runner for several. Faults of
// OSTRO_TEST_FAULT reach the workers here.
Result<std::unique_ptr<StepRunner>> make_runner(const CanonicalPrograms& programs, runtime::Engine& engine,
                                                const std::string& remat, int64_t workers,
                                                const spmd::Cells& cells);

}  // namespace ostro::train
