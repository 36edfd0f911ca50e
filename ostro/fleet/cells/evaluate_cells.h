// CellEvaluator: computes the held-out loss on all workers together; each keeps only its cells of the
// parameters. Errors: those of the program and of the collectives. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/train/step/held_out_text.h"

namespace ostro::fleet {

// One worker's part. `plan` must outlive it.
class CellEvaluator {
 public:
  // `program` is make_eval_program's. It is split over all axes of the mesh: parameters are taken in the
  // cells that the workers own, and gathered where they are used, a layer at a time. Workers that run
  // different leaves in training evaluate different batches.
  static Result<CellEvaluator> create(const WorkerPlan& plan, const ir::Program& program, int64_t rank);
  // The program as create() cuts it for this worker.
  static Result<spmd::Partition> partition(const WorkerPlan& plan, const ir::Program& program, int64_t rank);

  // All workers call it, each with its cells `owned` of the parameters. Returns to each of them the losses of
  // all batches, with the bits that one process would compute.
  Result<std::vector<train::BatchLoss>> evaluate(runtime::Collectives& group,
                                                 const std::vector<runtime::Buffer>& owned,
                                                 const train::HeldOutText& text);

 private:
  CellEvaluator(const WorkerPlan& plan, train::LossSums<size_t> at, spmd::Partition parts,
                std::unique_ptr<runtime::Executable> program)
      : plan_(&plan), at_(std::move(at)), parts_(std::move(parts)), program_(std::move(program)) {}

  const WorkerPlan* plan_;
  train::LossSums<size_t> at_;  // results of program_
  spmd::Partition parts_;
  std::unique_ptr<runtime::Executable> program_;
};

}  // namespace ostro::fleet
