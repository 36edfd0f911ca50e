// Data-parallel workers, simulated in one process, with the same bits as one worker.
//
// Each parameter is cut into cells, and some workers own cells. A step goes like this: every worker runs the
// leaf program on its own leaves (microbatches) and sums the gradients of whole subtrees of leaves. It sends
// these sums to the owners of the cells. The owners add them up in the one fixed tree over all leaves, update
// their cells, and send the new parameters to all workers.
#pragma once

#include <memory>
#include <string>

#include "ostro/spmd/layout.h"
#include "ostro/train/step/step.h"
#include "ostro/train/workers/worker.h"

namespace ostro::train {

struct WorkerOptions {
  int64_t workers = 1;
  // The axes along which parameters are cut into cells (numerics.cells), otherwise "embed". An array without
  // any of these axes is held and updated by every owner.
  spmd::Cells cells;
  WorkerFault fault = WorkerFault::kNone;
};

// What the workers of a run share. An error when there is less than one worker.
Result<WorkerPlan> make_worker_plan(const CanonicalPrograms& programs, runtime::Engine& engine,
                                    const std::string& remat, const WorkerOptions& options);

// A runner for several workers. Every worker compiles its own executables with `engine`, which must be
// thread-safe and must outlive the runner.
Result<std::unique_ptr<StepRunner>> make_worker_runner(const CanonicalPrograms& programs,
                                                       runtime::Engine& engine, const std::string& remat,
                                                       const WorkerOptions& options);

// The fault of OSTRO_TEST_FAULT that concerns workers.
WorkerFault planted_worker_fault();

// The runner of a training run: make_step_runner for one worker, make_worker_runner for several, with the
// planted fault.
Result<std::unique_ptr<StepRunner>> make_runner(const CanonicalPrograms& programs, runtime::Engine& engine,
                                                const std::string& remat, int64_t workers,
                                                const spmd::Cells& cells);

}  // namespace ostro::train
