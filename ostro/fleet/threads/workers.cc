#include "ostro/fleet/threads/workers.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <fmt/format.h>

#include "ostro/base/profile.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/fleet/shares/share_rule.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

bool same_handles(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].same_place(b[i])) return false;
  return true;
}

class WorkerRunner final : public train::StepRunner {
 public:
  explicit WorkerRunner(WorkerPlan plan) : plan_(std::move(plan)) {
    for (int64_t rank = 0; rank < plan_.mesh().size(); ++rank)
      workers_.push_back(std::make_unique<Worker>(plan_, rank));
    if (plan_.options.measured_shares) keeper_.emplace(share_keeper(plan_, {}));
  }

  // Compiles the programs whose numbers the reports show.
  Status compile() {
    ASSIGN_OR_RETURN(leaf_, workers_[0]->leaf_program());
    ASSIGN_OR_RETURN(update_, workers_[0]->apply_program());
    return Status();
  }

  Result<train::StepResult> run(train::State& state, const train::BatchArrays& batch,
                                const std::vector<float>& scalars) override {
    phase("workers");
    // A state that is not the one that this runner made last (the first step, a restored checkpoint) is given
    // to the workers.
    if (!state.params.empty() && !same_handles(state.params, last_.params))
      for (auto& worker : workers_) RETURN_IF_ERROR(worker->adopt(state));
    state.params.clear(), state.optimizer.clear();
    last_ = train::State();
    if (keeper_)
      if (const auto shares = keeper_->next(batch[0].shape().axes[0].size / plan_.rows))
        plan_.shares = *shares;
    const auto begin = std::chrono::steady_clock::now();
    train::StepResult result;
    RETURN_IF_ERROR(dist::run_workers(plan_.mesh(), [&](runtime::Collectives& c) -> Status {
      name_thread(fmt::format("worker {}", c.rank()));
      const PhasedSpan span(profiling() ? fmt::format("worker {}", c.rank()) : "");
      const auto rank = static_cast<size_t>(c.rank());
      BetweenSlices counted(c, plan_.slices);
      auto r = workers_[rank]->step(counted, batch, scalars);
      bytes_[rank] += c.bytes_sent(), between_[rank] += counted.bytes();
      RETURN_IF_ERROR(r);
      if (c.rank() == 0) result = std::move(r).value();
      return Status();
    }));
    if (keeper_)
      keeper_->note(workers_[0]->leaf_times().all,
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (result.ok()) ++state.step;
    return result;
  }

  Status collect(train::State& state, Collect what) override {
    if (state.params.empty()) {
      ASSIGN_OR_RETURN(state.params, whole(&Cells::params, 0, plan_.n));
      last_.params = state.params;
    }
    if (what == Collect::kParameters || !state.optimizer.empty()) return Status();
    ASSIGN_OR_RETURN(state.optimizer, whole(&Cells::optimizer, plan_.n, plan_.arrays.size() - plan_.n));
    return Status();
  }

  const ir::Program* leaf_program() const override { return &workers_[0]->leaf_ir(); }
  runtime::ExecutableInfo leaf_info() const override { return leaf_->info(); }
  runtime::ExecutableInfo update_info() const override { return update_->info(); }
  std::vector<train::WorkerLoad> loads(int64_t leaves) const override {
    std::vector<train::WorkerLoad> out;
    for (const auto& worker : workers_) out.push_back(worker->load(leaves));
    return out;
  }
  int64_t bytes_sent() const override { return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}); }
  int64_t bytes_between_slices() const override {
    return std::accumulate(between_.begin(), between_.end(), int64_t{0});
  }

 private:
  // Joins the workers' cells to whole arrays.
  Result<std::vector<Buffer>> whole(std::vector<Buffer> Cells::* part, size_t first, size_t count) const {
    std::vector<Buffer> out;
    for (size_t k = first; k < first + count; ++k) {
      std::vector<Buffer> parts;
      for (const auto& worker : workers_) {
        ASSIGN_OR_RETURN(parts.emplace_back(), (worker->own().*part)[k - first].to_host());
      }
      ASSIGN_OR_RETURN(Buffer b, spmd::join(plan_.mesh(), plan_.owned(k), plan_.shape(k), parts));
      out.push_back(std::move(b));
    }
    return out;
  }

  WorkerPlan plan_;
  std::vector<std::unique_ptr<Worker>> workers_;
  // Bytes that each worker has sent; those of them that went to other slices.
  std::vector<int64_t> bytes_ = std::vector<int64_t>(static_cast<size_t>(plan_.mesh().size()), 0);
  std::vector<int64_t> between_ = bytes_;
  std::optional<ShareKeeper> keeper_;
  train::State last_;  // the parameters that collect() made after the last step
  runtime::Executable* leaf_ = nullptr;
  runtime::Executable* update_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<train::StepRunner>> make_worker_runner(const train::CanonicalPrograms& programs,
                                                              runtime::Engine& engine,
                                                              const std::string& remat,
                                                              const WorkerOptions& options) {
  ASSIGN_OR_RETURN(WorkerPlan plan, make_worker_plan(programs, engine, remat, options));
  auto runner = std::make_unique<WorkerRunner>(std::move(plan));
  RETURN_IF_ERROR(runner->compile());
  return std::unique_ptr<train::StepRunner>(std::move(runner));
}

Result<MeshLoads> mesh_loads(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                             const std::string& remat, const WorkerOptions& options, int64_t leaves) {
  ASSIGN_OR_RETURN(const WorkerPlan plan, make_worker_plan(programs, engine, remat, options));
  MeshLoads out;
  for (int64_t rank = 0; rank < plan.mesh().size(); ++rank)
    out.workers.push_back(Worker(plan, rank).load(leaves));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo leaf,
                   engine.estimate(Worker(plan, 0).leaf_ir(), train::leaf_options(remat)));
  out.leaf_arena = leaf.arena_bytes;
  return out;
}

Result<WorkerOptions> worker_options(const train::TrainConfig& config, int64_t workers,
                                     std::vector<std::string> slices) {
  ASSIGN_OR_RETURN(ir::Sharding sharding, train::sharding_for(config.trainer.sharding, workers));
  int64_t rows = 0;
  for (const auto& stage : config.trainer.train_batch_size.stages) rows = std::max(rows, stage.value);
  return WorkerOptions{.sharding = std::move(sharding),
                       .cells = config.numerics.cells,
                       .exchange = config.trainer.sharding.mesh.exchange,
                       .leaves = rows / config.numerics.leaf_examples.value_or(rows),
                       .state_replicas = config.trainer.sharding.mesh.state_replicas,
                       .slices = std::move(slices),
                       .slice_partials = config.numerics.slice_partials,
                       .slice_overlap = config.trainer.sharding.mesh.slice_overlap,
                       .check = {config.trainer.cross_check, config.trainer.seed},
                       .measured_shares = config.trainer.sharding.shares == train::LeafSharing::kMeasured};
}

Result<std::unique_ptr<train::StepRunner>> make_runner(const train::CanonicalPrograms& programs,
                                                       runtime::Engine& engine, const std::string& remat,
                                                       const train::TrainConfig& config, int64_t workers,
                                                       std::vector<std::string> slices) {
  // One worker that checks itself needs the parts of several.
  if (workers == 1 && config.trainer.cross_check == 0)
    return train::make_step_runner(programs, engine, remat, config.numerics.slice_partials);
  train::TrainConfig used = config;
  if (workers == 1) used.trainer.sharding = train::ShardingOptions();  // nothing is split, whatever the mesh
  ASSIGN_OR_RETURN(const WorkerOptions options, worker_options(used, workers, std::move(slices)));
  return make_worker_runner(programs, engine, remat, options);
}

}  // namespace ostro::fleet
