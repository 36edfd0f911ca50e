// GradientSchedule: takes the workers of a mesh from a batch to the sums of the gradients. It decides which
// worker runs which leaf, what is gathered for it, and when gradients are exchanged. All schedules give the
// same bits (docs/spec/spmd.md).
#pragma once

#include <memory>
#include <vector>

#include "ostro/fleet/workers/worker_plan.h"

namespace ostro::fleet {

// The part of one worker. Workers communicate only through Collectives; all of them call gradients() at the
// same time.
class GradientSchedule {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  virtual ~GradientSchedule() = default;
  // The sums over all leaves of the cells that this worker owns. `owned` are its cells of the parameters.
  // `batch` holds the rows of all leaves; only those of the worker's own leaves are read. `results` gets what
  // every leaf gave, also those of other workers.
  virtual Result<Buffers> gradients(runtime::Collectives& c, const Buffers& owned,
                                    const train::BatchArrays& batch,
                                    std::vector<train::LeafResult>& results) = 0;
  // Forgets everything that was made from the parameters: they change now, or have changed.
  virtual void reset() = 0;
  // How many of the leaves this worker runs.
  virtual int64_t own_leaves(int64_t leaves) const = 0;
  // Adds what this worker holds, and what it sends in a step of `leaves` leaves, for its gradients.
  virtual void add_load(int64_t leaves, train::WorkerLoad& load) const = 0;
  // The program of a leaf; with rounds, of the first one.
  virtual const ir::Program& leaf_ir() const = 0;
  // leaf_ir(), compiled when it is first used.
  virtual Result<runtime::Executable*> leaf_program() = 0;
};

// Consecutive leaves for each worker, whose gradients it adds up before they are exchanged, once a step.
// `plan` must outlive the schedule.
std::unique_ptr<GradientSchedule> make_step_schedule(const WorkerPlan& plan, int64_t rank);

// Leaves in rounds, one for each worker, whose gradients the leaf program itself exchanges, layer by layer.
// `plan` must outlive the schedule.
std::unique_ptr<GradientSchedule> make_layer_schedule(const WorkerPlan& plan, int64_t rank);

// The one that the plan's options ask for.
std::unique_ptr<GradientSchedule> make_schedule(const WorkerPlan& plan, int64_t rank);

}  // namespace ostro::fleet
