#include "ostro/train/workers/workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/profile.h"
#include "ostro/base/test_fault.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

constexpr const char* kMeshAxis = "data";

ir::Sharding sharding_over(int64_t owners, const spmd::Cells& cells) {
  ir::Sharding s;
  s.mesh.axes = {{kMeshAxis, owners}};
  for (const auto& cell : cells) s.parameter.emplace_back(cell.first, kMeshAxis);
  s.parameter.emplace_back("embed", kMeshAxis);
  return s;
}

// Whether every array that has one of the axes to cut along is really split over the owners.
bool all_split(const spmd::Placement& placement, const std::vector<ir::Shape>& shapes) {
  for (const ir::Shape& shape : shapes) {
    bool mapped = false, split = false;
    for (const auto& entry : placement.sharding.parameter) mapped |= shape.has(entry.first);
    for (const spmd::Split& s : placement.layout(spmd::Role::kParameter, shape)) split |= s.split();
    if (mapped && !split) return false;
  }
  return true;
}

// Partitions the update program. The number of owners is the largest at which every such array is split, at
// most one per worker.
Result<spmd::Partition> partition_update(const CanonicalPrograms& p, const WorkerOptions& o) {
  const size_t n = parameter_count(p);
  std::vector<ir::Shape> shapes;
  for (size_t k = 0; k < n; ++k) shapes.push_back(p.update.body.shape(p.update.body.params[k]));
  int64_t owners = o.workers;
  while (owners > 1 && !all_split({sharding_over(owners, o.cells), o.cells, p.update.leaves}, shapes))
    --owners;
  spmd::PartitionOptions options;
  options.sharding = sharding_over(owners, o.cells);
  options.cells = o.cells;
  options.values = spmd::Role::kParameter;
  options.params.assign(p.update.body.params.size(), spmd::Role::kActivation);
  options.results.assign(p.update.body.results.size(), spmd::Role::kActivation);
  std::fill_n(options.params.begin(), 4 * n, spmd::Role::kParameter);
  std::fill_n(options.results.begin(), 3 * n, spmd::Role::kParameter);
  return spmd::partition(p.update, options);
}

bool same_handles(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes().data() != b[i].bytes().data()) return false;
  return true;
}

class WorkerRunner final : public StepRunner {
 public:
  explicit WorkerRunner(WorkerPlan plan) : plan_(std::move(plan)) {
    for (int64_t rank = 0; rank < plan_.workers; ++rank)
      workers_.push_back(std::make_unique<Worker>(plan_, rank));
  }

  // Compiles the programs whose numbers the reports show.
  Status compile() {
    ASSIGN_OR_RETURN(leaf_, workers_[0]->leaf_program());
    ASSIGN_OR_RETURN(update_, workers_[0]->update_program());
    return Status();
  }

  Result<StepResult> run(State& state, const BatchArrays& batch, const optim::AdamScalars& scalars) override {
    phase("workers");
    // If the state is not the one that this runner returned last (the first step, or a restored checkpoint),
    // it is given to the workers again.
    if (!same_handles(state.params, last_.params) || !same_handles(state.first_moment, last_.first_moment) ||
        !same_handles(state.second_moment, last_.second_moment))
      for (auto& worker : workers_) worker->adopt(state);
    state.params.clear(), state.first_moment.clear(), state.second_moment.clear();
    last_ = State();
    StepResult result;
    RETURN_IF_ERROR(dist::run_workers({{{kMeshAxis, plan_.workers}}}, [&](runtime::Collectives& c) -> Status {
      name_thread(fmt::format("worker {}", c.rank()));
      auto r = workers_[static_cast<size_t>(c.rank())]->step(c, batch, scalars);
      bytes_[static_cast<size_t>(c.rank())] += c.bytes_sent();
      RETURN_IF_ERROR(r);
      if (c.rank() == 0) result = std::move(r).value();
      return Status();
    }));
    state.params = workers_[0]->params();
    ASSIGN_OR_RETURN(state.first_moment, whole(&Worker::first_moment));
    ASSIGN_OR_RETURN(state.second_moment, whole(&Worker::second_moment));
    if (result.ok) ++state.step;
    last_ = state;
    return result;
  }

  runtime::ExecutableInfo leaf_info() const override { return leaf_->info(); }
  runtime::ExecutableInfo update_info() const override { return update_->info(); }
  std::vector<WorkerLoad> loads(int64_t leaves) const override {
    std::vector<WorkerLoad> out;
    for (const auto& worker : workers_) out.push_back(worker->load(leaves));
    return out;
  }
  int64_t bytes_sent() const override {
    int64_t total = 0;
    for (int64_t b : bytes_) total += b;
    return total;
  }

 private:
  // Joins the owners' parts of the moments to whole arrays, which a checkpoint needs.
  Result<std::vector<Buffer>> whole(const std::vector<Buffer>& (Worker::*part)() const) const {
    std::vector<Buffer> out;
    for (size_t k = 0; k < plan_.n; ++k) {
      std::vector<Buffer> parts;
      for (int64_t o = 0; o < plan_.owners(); ++o)
        parts.push_back((workers_[static_cast<size_t>(o)].get()->*part)()[k]);
      ASSIGN_OR_RETURN(Buffer b, spmd::join(plan_.update.mesh, plan_.layout(k), plan_.shape(k), parts));
      out.push_back(std::move(b));
    }
    return out;
  }

  WorkerPlan plan_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<int64_t> bytes_ = std::vector<int64_t>(static_cast<size_t>(plan_.workers), 0);
  State last_;  // the state that was returned after the last step
  runtime::Executable* leaf_ = nullptr;
  runtime::Executable* update_ = nullptr;
};

}  // namespace

Result<WorkerPlan> make_worker_plan(const CanonicalPrograms& programs, runtime::Engine& engine,
                                    const std::string& remat, const WorkerOptions& options) {
  if (options.workers < 1) return invalid_argument(fmt::format("{} workers; at least 1", options.workers));
  WorkerPlan plan;
  plan.programs = programs;
  plan.engine = &engine;
  plan.remat = remat;
  plan.workers = options.workers;
  plan.fault = options.fault;
  plan.n = parameter_count(programs);
  plan.rows = leaf_rows(programs);
  ASSIGN_OR_RETURN(plan.update, partition_update(programs, options));
  return plan;
}

Result<std::unique_ptr<StepRunner>> make_worker_runner(const CanonicalPrograms& programs,
                                                       runtime::Engine& engine, const std::string& remat,
                                                       const WorkerOptions& options) {
  ASSIGN_OR_RETURN(WorkerPlan plan, make_worker_plan(programs, engine, remat, options));
  auto runner = std::make_unique<WorkerRunner>(std::move(plan));
  RETURN_IF_ERROR(runner->compile());
  return std::unique_ptr<StepRunner>(std::move(runner));
}

WorkerFault planted_worker_fault() {
  return test_fault("leaf_order")   ? WorkerFault::kLeafOrder
         : test_fault("ring_order") ? WorkerFault::kRingOrder
                                    : WorkerFault::kNone;
}

Result<std::unique_ptr<StepRunner>> make_runner(const CanonicalPrograms& programs, runtime::Engine& engine,
                                                const std::string& remat, int64_t workers,
                                                const spmd::Cells& cells) {
  if (workers == 1) return make_step_runner(programs, engine, remat);
  return make_worker_runner(programs, engine, remat, {workers, cells, planted_worker_fault()});
}

}  // namespace ostro::train
