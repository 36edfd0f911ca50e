// GradientSchedule: computes the sums of the gradients of a batch on the workers of a mesh. It decides which
// worker runs which leaf, which parameters are gathered for it, and when gradients are exchanged. All
// schedules give the same bits (docs/spec/spmd.md). Errors: those of the collectives and of the programs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ostro/fleet/check/votes.h"
#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/fleet/shares/leaf_clock.h"

namespace ostro::fleet {

// What the checks of a step did (trainer.cross_check).
struct StepChecks {
  int64_t step = 0;    // the step's number in the chain; the caller sets it
  int64_t leaves = 0;  // of the step, on all workers, that were computed twice
  double seconds = 0;  // in which this worker computed again, compared, and waited for the comparison
  std::optional<Disagreement> disagreement;
};

// The part of one worker. Workers communicate only through Collectives; all of them call gradients() at the
// same time. An object is not thread-safe.
class GradientSchedule {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  virtual ~GradientSchedule() = default;
  // Returns the sums over all leaves of the gradients of the cells that this worker owns. `owned` are its
  // cells of the parameters, `copies` those of mirror_of(rank) that it keeps, for the parameters among
  // plan.mirrored. `batch` holds the rows of all leaves; only those of the worker's own leaves are read, and
  // those of leaves that it computes again. `results` gets the results of all leaves, also of those that
  // other workers ran. `checks.step` is set; the rest of it is filled in. Workers that disagree are an error
  // of kIo, with checks.disagreement, at all workers.
  virtual Result<Buffers> gradients(runtime::Collectives& c, const Buffers& owned, const Buffers& copies,
                                    const train::BatchArrays& batch, std::vector<train::LeafResult>& results,
                                    StepChecks& checks) = 0;
  // Forgets everything that was computed from the parameters, because they change.
  virtual void reset() = 0;
  // The number of the leaves that this worker runs.
  virtual int64_t own_leaves(int64_t leaves) const = 0;
  // How long leaves took in the last step; nothing without WorkerOptions::measured_shares.
  const LeafTimes& leaf_times() const { return times_; }
  // Adds to `load` the bytes that this worker holds, and that it sends, for its gradients in a step of
  // `leaves` leaves.
  virtual void add_load(int64_t leaves, train::WorkerLoad& load) const = 0;
  // The program of a leaf; with rounds, of the first one.
  virtual const ir::Program& leaf_ir() const = 0;
  // leaf_ir(), compiled when it is first used.
  virtual Result<runtime::Executable*> leaf_program() = 0;

 protected:
  LeafTimes times_;
};

// Each worker runs consecutive leaves and adds up their gradients, which are exchanged once a step. `plan`
// must outlive the schedule.
std::unique_ptr<GradientSchedule> make_step_schedule(const WorkerPlan& plan, int64_t rank);

// The workers run the leaves in rounds, one leaf each, and the leaf program itself exchanges the gradients,
// layer by layer. `plan` must outlive the schedule.
std::unique_ptr<GradientSchedule> make_layer_schedule(const WorkerPlan& plan, int64_t rank);

// The schedule that the plan's options name.
std::unique_ptr<GradientSchedule> make_schedule(const WorkerPlan& plan, int64_t rank);

}  // namespace ostro::fleet
