#include "ostro/train/processes/cell_work.h"

#include "ostro/train/cells/init_cells.h"

namespace ostro::train {
namespace {

class LeaderCells final : public SpreadState {
 public:
  LeaderCells(const WorkerPlan& plan, Worker& worker, optim::Boxes boxes, ProcessGroup& processes,
              SendCommand send)
      : work_(plan, worker, std::move(boxes)), processes_(processes), send_(std::move(send)) {}

  Status begin(int64_t seed) override {
    ASSIGN_OR_RETURN(runtime::Collectives * group, send_({.kind = Command::Kind::kInit}));
    return work_.begin(*group, seed);
  }

  Result<CellsRead> restore(io::FileSystem& fs, const std::string& path, int64_t step, bool prints) override {
    ASSIGN_OR_RETURN(runtime::Collectives * group,
                     send_({.kind = Command::Kind::kRestore, .step = step, .prints = prints}));
    return work_.restore(*group, fs, path, prints);
  }

  Status save(io::FileSystem& fs, const std::string& root, const checkpoint::Info& info,
              checkpoint::AsyncSaver& saver) override {
    ASSIGN_OR_RETURN(runtime::Collectives * group, send_({.kind = Command::Kind::kSave, .step = info.step}));
    ASSIGN_OR_RETURN(CellSnapshot snapshot, work_.snapshot(*group, info));
    const SharedSave place{
        &fs, root, processes_.store, save_key(info.step), processes_.rank, processes_.size};
    return saver.start(lead_save(place, std::move(snapshot)));
  }

  Result<std::vector<BatchLoss>> evaluate(const HeldOutText& text, const ir::Program& program) override {
    ASSIGN_OR_RETURN(runtime::Collectives * group, send_({.kind = Command::Kind::kEvaluate}));
    return work_.evaluate(*group, text, program);
  }

 private:
  CellWork work_;
  ProcessGroup& processes_;
  SendCommand send_;
};

}  // namespace

void CellWork::adopt(State state) {
  worker_.adopt_cells(std::move(state.params), std::move(state.first_moment), std::move(state.second_moment));
}

Status CellWork::begin(runtime::Collectives& group, int64_t seed) {
  ASSIGN_OR_RETURN(State state, initial_cells(plan_, group.rank(), seed, &group));
  adopt(std::move(state));
  return Status();
}

Result<CellsRead> CellWork::restore(runtime::Collectives& group, io::FileSystem& fs, const std::string& path,
                                    bool prints) {
  State state;
  ASSIGN_OR_RETURN(CellsRead read, restore_cells(plan_, group, fs, path, prints, state));
  if (read.unfit.empty()) adopt(std::move(state));
  return read;
}

Result<CellSnapshot> CellWork::snapshot(runtime::Collectives& group, const checkpoint::Info& info) const {
  const State owned{0, worker_.params(), worker_.first_moment(), worker_.second_moment()};
  return snapshot_cells(plan_, group, owned, boxes_, info);
}

Result<std::vector<BatchLoss>> CellWork::evaluate(runtime::Collectives& group, const HeldOutText& text,
                                                  const ir::Program& program) {
  if (!evaluator_) {
    ASSIGN_OR_RETURN(evaluator_, CellEvaluator::create(plan_, program, group.rank()));
  }
  return evaluator_->evaluate(group, worker_.params(), text);
}

std::unique_ptr<SpreadState> lead_cells(const WorkerPlan& plan, Worker& worker, optim::Boxes boxes,
                                        ProcessGroup& processes, SendCommand send) {
  return std::make_unique<LeaderCells>(plan, worker, std::move(boxes), processes, std::move(send));
}

}  // namespace ostro::train
