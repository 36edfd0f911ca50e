#include "ostro/fleet/processes/cell_work.h"

#include "ostro/fleet/cells/init_cells.h"

namespace ostro::fleet {
Status CellWork::adopt(runtime::Collectives& group, train::State state) {
  Cells own{std::move(state.params), std::move(state.optimizer)};
  ASSIGN_OR_RETURN(Cells copies, worker_.fetch_copies(group, own));
  worker_.adopt_cells(std::move(own), std::move(copies), state.step);
  return Status();
}

Status CellWork::begin(runtime::Collectives& group, int64_t seed) {
  ASSIGN_OR_RETURN(train::State state, initial_cells(plan_, group.rank(), seed, &group));
  return adopt(group, std::move(state));
}

Result<train::CellsRead> CellWork::restore(runtime::Collectives& group, io::FileSystem& fs,
                                           const std::string& path, bool prints) {
  train::State state;
  ASSIGN_OR_RETURN(train::CellsRead read, restore_cells(plan_, group, fs, path, prints, state));
  if (read.unfit.empty()) RETURN_IF_ERROR(adopt(group, std::move(state)));
  return read;
}

Result<CellSnapshot> CellWork::snapshot(runtime::Collectives& group, const checkpoint::Info& info) const {
  const auto state_of = [](const Cells& c) { return train::State{0, c.params, c.optimizer}; };
  const train::State mirror = state_of(worker_.mirror());
  return snapshot_cells(plan_, group, state_of(worker_.own()), mirror, boxes_, info);
}

Result<std::vector<train::BatchLoss>> CellWork::evaluate(runtime::Collectives& group,
                                                         const train::HeldOutText& text,
                                                         const ir::Program& program) {
  if (!evaluator_) {
    ASSIGN_OR_RETURN(evaluator_, CellEvaluator::create(plan_, program, group.rank()));
  }
  const Cells& own = worker_.own();
  std::vector<runtime::Buffer> weights;
  for (const size_t k : train::evaluated_arrays(plan_.arrays)) weights.push_back(train::array_of(own, k));
  return evaluator_->evaluate(group, weights, text);
}

}  // namespace ostro::fleet
