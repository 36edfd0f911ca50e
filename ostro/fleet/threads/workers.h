// make_worker_runner: training steps on several workers that are threads of this process. They share nothing
// but messages, and give the bits of one worker.
//
// In a step every worker runs the leaf program on its own leaves (microbatches) and sums the gradients of
// whole subtrees of leaves. It sends these sums to the owners of the cells of the parameters. The owners add
// them up in the one fixed tree over all leaves, update their cells, and send the new parameters to the
// workers that need them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/train/options/config.h"

namespace ostro::fleet {

// A runner for the workers of a mesh. Every worker compiles its own executables with `engine`, which must be
// thread-safe and must outlive the runner.
Result<std::unique_ptr<train::StepRunner>> make_worker_runner(const train::CanonicalPrograms& programs,
                                                              runtime::Engine& engine,
                                                              const std::string& remat,
                                                              const WorkerOptions& options);

// The options of a run on `workers` workers: its mesh and its cells. Error: the mesh cannot have that many
// workers. `slices`: the name of each worker's slice; empty: one slice.
Result<WorkerOptions> worker_options(const train::TrainConfig& config, int64_t workers,
                                     std::vector<std::string> slices = {});

// The memory that the workers would need and the bytes that they would send in steps of `leaves` leaves, and
// the arena of a leaf on worker 0. Nothing is compiled.
struct MeshLoads {
  std::vector<train::WorkerLoad> workers;
  int64_t leaf_arena = 0;
};
Result<MeshLoads> mesh_loads(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                             const std::string& remat, const WorkerOptions& options, int64_t leaves);

// The runner of a training run in one process: make_step_runner for one worker, whatever the mesh (the bits
// are the same), make_worker_runner for several, and for one with trainer.cross_check.
Result<std::unique_ptr<train::StepRunner>> make_runner(const train::CanonicalPrograms& programs,
                                                       runtime::Engine& engine, const std::string& remat,
                                                       const train::TrainConfig& config, int64_t workers,
                                                       std::vector<std::string> slices = {});

}  // namespace ostro::fleet
