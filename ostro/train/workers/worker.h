// One worker of a mesh: its executables, the cells it owns, and its part of a step. Workers communicate only
// through Collectives.
#pragma once

#include <memory>
#include <vector>

#include "ostro/train/workers/worker_plan.h"

namespace ostro::train {

class Worker {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // `plan` must outlive the worker.
  Worker(const WorkerPlan& plan, int64_t rank) : plan_(plan), rank_(rank) {}

  // Takes the owned cells out of a whole state. The first step after it gathers the parameters.
  void adopt(const State& state);
  // The same from parts: what this worker owns of every parameter and moment.
  void adopt_cells(Buffers params, Buffers first_moment, Buffers second_moment);
  // Runs one step together with all other workers. `batch` holds the rows of all leaves; the worker reads
  // only those of its own leaves. `number` is the step's in the chain, for fault_point().
  Result<StepResult> step(runtime::Collectives& collectives, const BatchArrays& batch,
                          const optim::AdamScalars& scalars, int64_t number);

  // Memory and communication of this worker in a step of `leaves` leaves.
  WorkerLoad load(int64_t leaves) const;

  int64_t rank() const { return rank_; }
  // The owned cells.
  const Buffers& params() const { return p_; }
  const Buffers& first_moment() const { return m_; }
  const Buffers& second_moment() const { return v_; }

  // The programs of this worker. Each is compiled when it is first used.
  Result<runtime::Executable*> leaf_program();
  Result<runtime::Executable*> update_program();

 private:
  size_t leaf_result_bytes() const;
  BatchArrays leaf_batch(const BatchArrays& batch, int64_t leaf) const;
  Result<std::vector<Buffers>> run_leaves(runtime::Collectives& c, const BatchArrays& batch, int64_t leaves,
                                          std::vector<LeafResult>& results);
  Status share_results(runtime::Collectives& c, int64_t leaves, std::vector<LeafResult>& results);
  Result<Buffers> exchange_gradients(runtime::Collectives& c, int64_t leaves, std::vector<Buffers> partials);
  Result<Buffers> add(std::unique_ptr<runtime::Executable>& program, Buffers a, Buffers b);
  Result<Buffers> join(int64_t leaves, std::vector<std::vector<Buffers>> received);
  Status update(runtime::Collectives& c, Buffers gradients, const optim::AdamScalars& scalars,
                StepResult& result);
  Status gather_params(runtime::Collectives& c);

  const WorkerPlan& plan_;
  int64_t rank_;
  int64_t number_ = 0;  // of the step that goes on
  Buffers p_, m_, v_;   // owned cells of parameters and moments
  Buffers params_;      // what the leaf program reads; empty until it is gathered
  std::unique_ptr<runtime::Executable> leaf_, add_whole_, add_owned_, update_;
};

}  // namespace ostro::train
