// Worker: one worker of a mesh, with its executables, the cells that it owns, and its part of a step. Workers
// communicate only through Collectives. One thread uses a worker.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/fleet/shares/recent_times.h"
#include "ostro/fleet/workers/gradient_schedule.h"

namespace ostro::fleet {

// The cells of a training state that a worker has: one buffer for every parameter and for every array of the
// optimizer, in the order of the programs. The lists are empty when it has none.
struct Cells {
  std::vector<runtime::Buffer> params, optimizer;
};

// In WorkerLoad::sent: the messages of the barrier after the new cells of a joint update are made.
inline constexpr const char* kWordOfNewCells = "word that the new cells are there";

class Worker {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // `plan` must outlive the worker.
  Worker(const WorkerPlan& plan, int64_t rank)
      : plan_(plan), rank_(rank), schedule_(make_schedule(plan, rank)) {}

  // Takes the owned cells out of a whole state.
  Status adopt(const train::State& state);
  // Takes over cells: those that this worker owns, and its copies of the cells of mirrored arrays that
  // mirror_of(rank) owns (worker_plan.h). They are the state after `step` steps. `last`: the result of that
  // step, if this process did it.
  void adopt_cells(Cells own, Cells mirror, int64_t step, train::StepResult last = {});
  // Runs one step together with all other workers. `batch` holds the rows of all leaves; the worker reads
  // only those of its own leaves and of leaves that it checks. `scalars` are those of the optimizer. Errors:
  // those of the collectives, after which can_finish() says whether the step is lost; those of the programs;
  // workers that disagree, with checks().disagreement, which all workers have.
  Result<train::StepResult> step(runtime::Collectives& collectives, const train::BatchArrays& batch,
                                 const std::vector<float>& scalars);

  // Memory and communication of this worker in a step of `leaves` leaves.
  train::WorkerLoad load(int64_t leaves) const;

  const WorkerPlan& plan() const { return plan_; }
  int64_t rank() const { return rank_; }
  // The owned cells, and the copies of those of mirror_of(rank).
  const Cells& own() const { return own_; }
  const Cells& mirror() const { return mirror_; }
  // The number of steps after which the cells are the state.
  int64_t step_number() const { return step_; }

  // True when this worker can still finish an interrupted step alone, with the measures of another worker:
  // its gradients are complete, and only the measures were missing. A joint update needs the new cells, too.
  bool can_finish() const { return pending_.has_value() && (!plan_.update.joint || pending_->renewed); }
  // Finishes the interrupted step with `measured`. can_finish() must be true.
  Status finish_with(const train::Measured& measured);
  // How long leaves took in the last step (GradientSchedule::leaf_times), and how long a leaf of this worker
  // usually takes, in seconds; 0: not known. carry_times(): of the worker that this process was before.
  const LeafTimes& leaf_times() const { return schedule_->leaf_times(); }
  double usual_leaf_seconds() const { return own_times_.usual(); }
  void carry_times(const Worker& before) { own_times_ = before.own_times_; }
  // What the checks of the last step did, also of one that ended with an error.
  const StepChecks& checks() const { return checks_; }
  // The result of the last step that was finished, without the fingerprints.
  const train::StepResult& last_result() const { return last_; }
  // Puts the fingerprints of the parameters and the experts' loads into the result. All workers call it.
  Status add_fingerprints(runtime::Collectives& c, train::StepResult& result);

  // Gets the copies of the cells of mirror_of(rank) from the worker that owns them. All workers call it.
  Result<Cells> fetch_copies(runtime::Collectives& c, const Cells& own) const;

  // The programs of this worker. Each is compiled when it is first used.
  const ir::Program& leaf_ir() const { return schedule_->leaf_ir(); }
  Result<runtime::Executable*> leaf_program() { return schedule_->leaf_program(); }
  Result<runtime::Executable*> apply_program();
  // Compiles all programs that a step needs.
  Status compile();

 private:
  Result<train::StepResult> try_step(runtime::Collectives& c, const train::BatchArrays& batch,
                                     const std::vector<float>& scalars);
  // worker_update.cc
  struct Pending {
    Buffers own, mirror;  // gradients
    std::vector<float> scalars;
    train::StepResult result;
    double loss_sum = 0;
    // Of a joint update: the new cells, until all have theirs.
    bool renewed = false;
    Cells new_own = {}, new_mirror = {};
  };
  Result<train::StepResult> update(runtime::Collectives& c, Buffers gradients,
                                   const std::vector<float>& scalars, train::StepResult result);
  // `owned` are arrays number `first` and on of the state.
  Result<Buffers> exchange_mirrored(runtime::Collectives& c, const Buffers& owned, size_t first = 0) const;
  Result<train::Measured> measure(runtime::Collectives& c);
  Status compare_copies(runtime::Collectives& c);
  Status make_new_cells(runtime::Collectives& c, const train::Measured& measured);
  Status apply(runtime::Executable& program, Cells& cells, Buffers gradients, const train::Measured& measured,
               runtime::Collectives* group = nullptr);
  Status compile_once(std::unique_ptr<runtime::Executable>& slot, const ir::Program& program,
                      const runtime::CompileOptions& options);

  const WorkerPlan& plan_;
  int64_t rank_;
  Cells own_, mirror_;
  int64_t step_ = 0;
  std::optional<Pending> pending_;
  train::StepResult last_;
  StepChecks checks_;
  RecentTimes own_times_;
  std::unique_ptr<GradientSchedule> schedule_;
  std::unique_ptr<runtime::Executable> measure_, apply_, apply_mirror_, report_;
};

}  // namespace ostro::fleet
