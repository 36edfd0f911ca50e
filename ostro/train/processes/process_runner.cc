#include "ostro/train/processes/process_runner.h"

#include "ostro/base/profile.h"
#include "ostro/train/processes/cell_work.h"
#include "ostro/train/workers/workers.h"

namespace ostro::train {
namespace {

class ProcessRunner final : public StepRunner {
 public:
  ProcessRunner(WorkerPlan plan, ProcessGroup& group, optim::Boxes boxes)
      : plan_(std::move(plan)), processes_(group), worker_(plan_, 0) {
    cells_ = lead_cells(plan_, worker_, std::move(boxes), group,
                        [this](const Command& command) -> Result<runtime::Collectives*> {
                          if (group_ == nullptr) RETURN_IF_ERROR(connect());
                          RETURN_IF_ERROR(send(command));
                          return group_.get();
                        });
  }

  ~ProcessRunner() override {
    if (!processes_.lost) (void)send(Command{});
  }

  Status compile() {
    ASSIGN_OR_RETURN(leaf_, worker_.leaf_program());
    ASSIGN_OR_RETURN(update_, worker_.update_program());
    return Status();
  }

  Result<StepResult> run(State& state, const BatchArrays& batch, const optim::AdamScalars& scalars) override {
    RETURN_IF_ERROR(send({Command::Kind::kStep, state.step, false, scalars.lr, scalars.k1, scalars.k2}));
    ASSIGN_OR_RETURN(StepResult result, worker_.step(*group_, batch, scalars));
    if (result.ok) ++state.step;
    return result;
  }

  SpreadState* spread() override { return cells_.get(); }

  runtime::ExecutableInfo leaf_info() const override { return leaf_->info(); }
  runtime::ExecutableInfo update_info() const override { return update_->info(); }
  std::vector<WorkerLoad> loads(int64_t leaves) const override {
    std::vector<WorkerLoad> out;
    for (int64_t rank = 0; rank < processes_.size; ++rank) out.push_back(Worker(plan_, rank).load(leaves));
    return out;
  }
  int64_t bytes_sent() const override { return group_ == nullptr ? 0 : group_->bytes_sent(); }

 private:
  Status connect() {
    phase("connect workers");
    for (int64_t rank = 1; rank < processes_.size; ++rank)
      RETURN_IF_ERROR(wait_for(processes_, ready_key(rank)));
    RETURN_IF_ERROR(processes_.store->set(kConnectKey, ""));
    ASSIGN_OR_RETURN(group_, processes_.connect(plan_.mesh()));
    return Status();
  }

  Status send(const Command& command) {
    const Status sent = processes_.store->set(command_key(commands_++), command.text());
    if (!sent.ok()) processes_.lost = sent.error().message();
    return sent;
  }

  WorkerPlan plan_;
  ProcessGroup& processes_;
  Worker worker_;
  std::unique_ptr<SpreadState> cells_;
  std::unique_ptr<dist::Group> group_;
  int64_t commands_ = 0;
  runtime::Executable* leaf_ = nullptr;
  runtime::Executable* update_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<StepRunner>> make_process_runner(const CanonicalPrograms& programs,
                                                        runtime::Engine& engine, const std::string& remat,
                                                        const TrainConfig& config, ProcessGroup& group) {
  ASSIGN_OR_RETURN(const WorkerOptions options, worker_options(config, group.size));
  ASSIGN_OR_RETURN(WorkerPlan plan, make_worker_plan(programs, engine, remat, options));
  auto runner = std::make_unique<ProcessRunner>(std::move(plan), group, cell_boxes(config));
  RETURN_IF_ERROR(runner->compile());
  return std::unique_ptr<StepRunner>(std::move(runner));
}

}  // namespace ostro::train
