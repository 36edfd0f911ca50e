// One simulated data-parallel worker: its executables, its copy of the parameters and the cells it owns.
// workers.cc starts them; everything between them goes through Collectives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/spmd/partition.h"
#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// Faults in the exchange, so that the equality tests are seen to fail (base/test_fault.h).
enum class WorkerFault {
  kNone,
  kLeafOrder,  // leaves 1 and 2 change places
  kRingOrder,  // owners add the workers' partials one after another, beginning with their neighbour
};

// What all workers of a run share and none changes.
struct WorkerPlan {
  CanonicalPrograms programs;
  runtime::Engine* engine = nullptr;
  std::string remat;
  int64_t workers = 1;
  WorkerFault fault = WorkerFault::kNone;
  size_t n = 0;            // parameters
  int64_t rows = 0;        // of one leaf
  spmd::Partition update;  // over the owners: the first workers, as many as there are cells for

  int64_t owners() const { return update.mesh.size(); }
  // Layout of parameter k, and of its moments and gradient.
  const spmd::Layout& layout(size_t k) const { return update.params[k]; }
  const ir::Shape& shape(size_t k) const { return update.param_shapes[k]; }
  ir::Shape local_shape(size_t k, int64_t owner) const;
  // Bytes of what an owner holds of the parameters.
  int64_t local_bytes(int64_t owner) const;
  // After a step owners send their cells to all; what every owner holds whole comes from the first.
  bool sends_parameter(size_t k, int64_t owner) const;
};

class Worker {
 public:
  Worker(const WorkerPlan& plan, int64_t rank) : plan_(plan), rank_(rank) {}

  // Takes the state: the whole parameters, and what it owns of all three parts.
  void adopt(const State& state);
  // One step, in step with all other workers. `batch` holds the rows of all leaves; only this worker's are
  // read.
  Result<StepResult> step(runtime::Collectives& collectives, const BatchArrays& batch,
                          const optim::AdamScalars& scalars);

  // What it holds and sends when a step has so many leaves.
  WorkerLoad load(int64_t leaves) const;

  bool owner() const { return rank_ < plan_.owners(); }
  const std::vector<runtime::Buffer>& params() const { return params_; }  // whole, after the last step
  // What an owner holds of the moments.
  const std::vector<runtime::Buffer>& first_moment() const { return m_; }
  const std::vector<runtime::Buffer>& second_moment() const { return v_; }

  // Compiled at the first use.
  Result<runtime::Executable*> leaf_program();
  Result<runtime::Executable*> update_program();

 private:
  using Buffers = std::vector<runtime::Buffer>;

  size_t leaf_result_bytes() const;
  Result<std::vector<Buffers>> run_leaves(const BatchArrays& batch, int64_t leaves,
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
  Buffers params_;     // whole
  Buffers p_, m_, v_;  // of an owner: its cells
  std::unique_ptr<runtime::Executable> leaf_, add_whole_, add_local_, update_;
};

}  // namespace ostro::train
