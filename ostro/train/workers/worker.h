// One simulated data-parallel worker: its executables, its copy of the parameters, and the cells it owns.
// workers.cc starts the workers. They communicate only through Collectives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/spmd/partition.h"
#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// Deliberate faults in the communication, used to prove that the equality tests fail (base/test_fault.h).
enum class WorkerFault {
  kNone,
  kLeafOrder,  // leaves 1 and 2 change places
  // owners add partial sums in ring order, starting with the next worker's, instead of in the tree
  kRingOrder,
};

// What all workers of a run share. It does not change after it is made.
struct WorkerPlan {
  CanonicalPrograms programs;
  runtime::Engine* engine = nullptr;
  std::string remat;
  int64_t workers = 1;
  WorkerFault fault = WorkerFault::kNone;
  size_t n = 0;      // number of parameters
  int64_t rows = 0;  // rows of one leaf
  // The update program, partitioned over the owners. The owners are the first workers: as many as every split
  // array has cells for.
  spmd::Partition update;

  int64_t owners() const { return update.mesh.size(); }
  // Layout of parameter k; its moments and gradient have the same.
  const spmd::Layout& layout(size_t k) const { return update.params[k]; }
  const ir::Shape& shape(size_t k) const { return update.param_shapes[k]; }
  ir::Shape local_shape(size_t k, int64_t owner) const;
  // Size of an owner's cells of all parameters, in bytes.
  int64_t local_bytes(int64_t owner) const;
  // Whether `owner` sends its part of parameter k to all workers after a step. For a parameter that is split,
  // every owner sends its cells. A parameter that every owner holds whole is sent by the first owner only.
  bool sends_parameter(size_t k, int64_t owner) const;
};

class Worker {
 public:
  Worker(const WorkerPlan& plan, int64_t rank) : plan_(plan), rank_(rank) {}

  // Copies the state in: all parameters, and the owned cells of parameters and moments.
  void adopt(const State& state);
  // Runs one step together with all other workers. `batch` holds the rows of all leaves; the worker reads
  // only those of its own leaves.
  Result<StepResult> step(runtime::Collectives& collectives, const BatchArrays& batch,
                          const optim::AdamScalars& scalars);

  // Memory and communication of this worker in a step of `leaves` leaves.
  WorkerLoad load(int64_t leaves) const;

  bool owner() const { return rank_ < plan_.owners(); }
  // all of each parameter, after the last step
  const std::vector<runtime::Buffer>& params() const { return params_; }
  // The owned cells of the moments. Empty for a worker that is not an owner.
  const std::vector<runtime::Buffer>& first_moment() const { return m_; }
  const std::vector<runtime::Buffer>& second_moment() const { return v_; }

  // The programs of this worker. Each is compiled when it is first used.
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
  Buffers params_;     // all of each parameter
  Buffers p_, m_, v_;  // owned cells of parameters and moments; empty if not an owner
  std::unique_ptr<runtime::Executable> leaf_, add_whole_, add_local_, update_;
};

}  // namespace ostro::train
