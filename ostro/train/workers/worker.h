// One worker of a mesh: its executables, the cells it owns, and its part of a step. Workers communicate only
// through Collectives.
#pragma once

#include <memory>
#include <vector>

#include "ostro/train/workers/gradient_schedule.h"
#include "ostro/train/workers/worker_plan.h"

namespace ostro::train {

class Worker {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // `plan` must outlive the worker.
  Worker(const WorkerPlan& plan, int64_t rank)
      : plan_(plan), rank_(rank), schedule_(make_schedule(plan, rank)) {}

  // Takes the owned cells out of a whole state.
  void adopt(const State& state);
  // The same from parts: what this worker owns of every parameter and moment.
  void adopt_cells(Buffers params, Buffers first_moment, Buffers second_moment);
  // Runs one step together with all other workers. `batch` holds the rows of all leaves; the worker reads
  // only those of its own leaves.
  Result<StepResult> step(runtime::Collectives& collectives, const BatchArrays& batch,
                          const optim::AdamScalars& scalars);

  // Memory and communication of this worker in a step of `leaves` leaves.
  WorkerLoad load(int64_t leaves) const;

  int64_t rank() const { return rank_; }
  // The owned cells.
  const Buffers& params() const { return p_; }
  const Buffers& first_moment() const { return m_; }
  const Buffers& second_moment() const { return v_; }

  // The programs of this worker. Each is compiled when it is first used.
  Result<runtime::Executable*> leaf_program() { return schedule_->leaf_program(); }
  Result<runtime::Executable*> update_program();

 private:
  Status update(runtime::Collectives& c, Buffers gradients, const optim::AdamScalars& scalars,
                StepResult& result);

  const WorkerPlan& plan_;
  int64_t rank_;
  Buffers p_, m_, v_;  // owned cells of parameters and moments
  std::unique_ptr<GradientSchedule> schedule_;
  std::unique_ptr<runtime::Executable> update_;
};

}  // namespace ostro::train
