#include "ostro/train/step/step.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/ir/program/builder.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/tree.h"
#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/programs/watch.h"
#include "ostro/train/step/gradient_sums.h"
#include "ostro/train/step/leaf_progress.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

using Buffers = std::vector<Buffer>;

std::vector<int64_t> first_inputs(size_t count) {
  std::vector<int64_t> inputs(count);
  std::iota(inputs.begin(), inputs.end(), 0);
  return inputs;
}

// Not inlined, so that no addition leaves the scope of its caller's HostArithmetic.
[[gnu::noinline]] double sum_on_host(const std::vector<double>& partials) {
  return numerics::tree_sum<double>(partials);
}

class SerialRunner final : public StepRunner {
 public:
  SerialRunner(Signatures at, int64_t rows, int64_t groups)
      : at_(std::move(at)), rows_(rows), groups_(groups) {}

  Status compile(const CanonicalPrograms& p, runtime::Engine& engine, const std::string& remat) {
    ASSIGN_OR_RETURN(leaf_, engine.compile(p.leaf, leaf_options(remat)));
    ASSIGN_OR_RETURN(update_, engine.compile(p.update, update_options(p)));
    std::vector<ir::Shape> gradients;
    for (const size_t i : at_.leaf_results.gradients) {
      gradients.push_back(p.leaf.body.shape(p.leaf.body.results[i]));
      gradient_bytes_ += gradients.back().bytes();
    }
    memory_ = &engine.memory();
    for (const ir::Shape& shape : state_arrays(p).shapes) state_bytes_ += shape.bytes();
    expert_loads_ = expert_loads(at_.model);
    adder_.emplace(engine);
    return adder_->compile(gradients, groups_ > 0);
  }

  Result<StepResult> run(State& state, const BatchArrays& batch, const std::vector<float>& scalars) override {
    StepResult result;
    ASSIGN_OR_RETURN(state.params, runtime::all_to(std::move(state.params), *memory_));  // for all leaves
    const int64_t leaves = batch[0].shape().axes[0].size / rows_;
    SubtreeSums sums(leaves, groups_, *adder_);
    std::vector<LeafResults<Buffer>> outputs;  // without gradients; read when all leaves have been started
    begin_leaves(leaves);
    for (int64_t i = 0; i < leaves; ++i) {
      phase("leaf", i);
      ASSIGN_OR_RETURN(
          Buffers out,
          leaf_->run(as_list(LeafParams<Buffer>{state.params, rows_of(batch, i * rows_, rows_)})));
      LeafResults<Buffer> leaf = read_fields(at_.leaf_results, std::move(out));
      RETURN_IF_ERROR(sums.push({i, 1}, std::exchange(leaf.gradients, {})));
      outputs.push_back(std::move(leaf));
      leaf_done();
    }
    Buffers gradients = sums.root();
    for (const LeafResults<Buffer>& leaf : outputs) {
      ASSIGN_OR_RETURN(result.leaves.emplace_back(), leaf_result(leaf));
    }

    phase("update");
    const auto [loss_sum, weight] = join_losses(result.leaves);
    result.weight = weight;
    result.measures = join_measures(result.leaves);
    // Moved: what the program may overwrite has no other handle.
    UpdateParams<Buffer> in{std::move(state.params), std::move(state.optimizer), std::move(gradients)};
    in.loss_sum = Buffer::scalar(ir::DType::f64, loss_sum);
    in.weight = Buffer::scalar(ir::DType::f64, weight);
    for (const float s : scalars) in.scalars.push_back(Buffer::scalar(ir::DType::f32, s));
    ASSIGN_OR_RETURN(Buffers list, update_->run(as_list(std::move(in))));
    UpdateResults<Buffer> out = read_fields(at_.update_results, std::move(list));
    state.params = std::move(out.params);
    state.optimizer = std::move(out.optimizer);
    ASSIGN_OR_RETURN(result.measured, numbers_of(out.measures));
    Buffers loads;
    for (const size_t k : expert_loads_) loads.push_back(state.params[k]);
    RETURN_IF_ERROR(put_report(result, out.report, std::move(loads)));
    if (result.ok()) ++state.step;
    return result;
  }

  runtime::ExecutableInfo leaf_info() const override { return leaf_->info(); }
  runtime::ExecutableInfo update_info() const override { return update_->info(); }
  std::vector<WorkerLoad> loads(int64_t leaves) const override {
    WorkerLoad load;
    load.leaves = leaves;
    load.owned = state_bytes_;
    load.partials = live_partials(leaves);
    load.gradients = load.partials * gradient_bytes_;
    return {load};
  }

 private:
  const Signatures at_;
  int64_t rows_, groups_;
  std::vector<size_t> expert_loads_;
  int64_t gradient_bytes_ = 0, state_bytes_ = 0;
  runtime::Memory* memory_ = nullptr;  // the engine's
  std::unique_ptr<runtime::Executable> leaf_, update_;
  std::optional<GradientAdder> adder_;
};

}  // namespace

int64_t WorkerLoad::total_between() const {
  int64_t total = 0;
  for (const Sent& s : sent) total += s.between;
  return total;
}

int64_t WorkerLoad::total_sent() const {
  int64_t total = 0;
  for (const Sent& s : sent) total += s.bytes;
  return total;
}

runtime::CompileOptions leaf_options(const std::string& remat) { return {.donate = {}, .remat = remat}; }

runtime::CompileOptions update_options(size_t arrays) { return {.donate = first_inputs(arrays)}; }

runtime::CompileOptions update_options(const CanonicalPrograms& p) {
  return update_options(signatures_of(p).update_params.loss_sum);
}

runtime::CompileOptions add_options(size_t n) { return {.donate = first_inputs(n)}; }

Result<std::array<int64_t, 2>> fingerprint_lanes(const Buffer& print) {
  std::array<int64_t, 2> lanes{};
  RETURN_IF_ERROR(print.read(std::as_writable_bytes(std::span(lanes))));
  return lanes;
}

Status put_report(StepResult& result, const UpdateReport<Buffer>& report, Buffers expert_loads) {
  result.prints.clear();
  for (const Buffer& print : report.fingerprints) {
    ASSIGN_OR_RETURN(result.prints.emplace_back(), fingerprint_lanes(print));
  }
  result.watched.clear();
  for (const Buffer& norm : report.watched) {
    ASSIGN_OR_RETURN(result.watched.emplace_back(), norm.scalar<double>());
  }
  ASSIGN_OR_RETURN(result.expert_loads, runtime::all_to(std::move(expert_loads), runtime::host_memory()));
  return Status();
}

std::vector<std::pair<std::string, double>> watched_norms(const CanonicalPrograms& programs,
                                                          const StepResult& result) {
  std::vector<double> norms = result.measured.watched;
  norms.insert(norms.end(), result.watched.begin(), result.watched.end());
  const std::vector<std::string> names = watch_names(programs.update);
  OSTRO_CHECK(names.size() == norms.size(), "{} norms with {} names", norms.size(), names.size());
  std::vector<std::pair<std::string, double>> out;
  for (size_t k = 0; k < names.size(); ++k) out.emplace_back(names[k], norms[k]);
  return out;
}

int64_t leaf_rows(const CanonicalPrograms& p) {
  const size_t tokens = signatures_of(p).leaf_params.batch[0];
  return p.leaf.body.shape(p.leaf.body.params[tokens]).axes[0].size;
}

ir::Program add_program(const std::vector<ir::Shape>& shapes) {
  ir::Program p;
  p.name = "add";
  ir::Builder b(p.body);
  for (int side = 0; side < 2; ++side)
    for (const ir::Shape& s : shapes) p.body.add_param(s);
  for (size_t i = 0; i < shapes.size(); ++i)
    p.body.results.push_back(b.add(ir::OpKind::add, {p.body.params[i], p.body.params[shapes.size() + i]}));
  return p;
}

ir::Program round_program(const std::vector<ir::Shape>& shapes) {
  ir::Program p;
  p.name = "round";
  ir::Builder b(p.body);
  const auto cast = [&](ir::ValueId x, ir::DType to) {
    return b.add(ir::OpKind::cast, {x}, {{"dtype", std::string(ir::dtype_name(to))}});
  };
  for (const ir::Shape& s : shapes) p.body.add_param(s);
  for (size_t i = 0; i < shapes.size(); ++i)
    p.body.results.push_back(cast(cast(p.body.params[i], ir::DType::bf16), shapes[i].dtype));
  return p;
}

BatchArrays rows_of(const BatchArrays& batch, int64_t first, int64_t count) {
  BatchArrays out;
  for (const Buffer& b : batch) out.push_back(b.rows(first, count));
  return out;
}

std::pair<double, double> join_losses(const std::vector<LeafResult>& leaves) {
  const numerics::HostArithmetic environment;
  std::vector<double> losses, weights;
  for (const LeafResult& l : leaves) {
    losses.push_back(l.loss_sum);
    weights.push_back(l.weight);
  }
  return {sum_on_host(losses), sum_on_host(weights)};
}

std::vector<double> join_measures(const std::vector<LeafResult>& leaves) {
  const numerics::HostArithmetic environment;
  std::vector<double> out;
  for (size_t k = 0; !leaves.empty() && k < leaves[0].measures.size(); ++k) {
    std::vector<double> sums;
    for (const LeafResult& l : leaves) sums.push_back(l.measures[k]);
    out.push_back(sum_on_host(sums));
  }
  return out;
}

Result<LeafResult> leaf_result(const LeafResults<Buffer>& results) {
  LeafResult leaf;
  ASSIGN_OR_RETURN(leaf.loss_sum, results.loss_sum.scalar<double>());
  ASSIGN_OR_RETURN(leaf.weight, results.weight.scalar<double>());
  for (const Buffer& print : results.fingerprints) {
    ASSIGN_OR_RETURN(leaf.gradient_prints.emplace_back(), fingerprint_lanes(print));
  }
  for (const Buffer& sum : results.measures) {
    ASSIGN_OR_RETURN(leaf.measures.emplace_back(), sum.scalar<double>());
  }
  return leaf;
}

Result<std::unique_ptr<StepRunner>> make_step_runner(const CanonicalPrograms& p, runtime::Engine& engine,
                                                     const std::string& remat, int64_t groups) {
  ASSIGN_OR_RETURN(Signatures at, check_signatures(p));
  auto runner = std::make_unique<SerialRunner>(std::move(at), leaf_rows(p), groups);
  RETURN_IF_ERROR(runner->compile(p, engine, remat));
  return std::unique_ptr<StepRunner>(std::move(runner));
}

Result<State> initial_state(const CanonicalPrograms& p, runtime::Engine& engine, int64_t seed) {
  ASSIGN_OR_RETURN(auto init, engine.compile(p.init));
  State state;
  ASSIGN_OR_RETURN(state.params, init->run({init_key(seed)}));
  const StateArrays arrays = state_arrays(p);
  for (size_t i = arrays.n; i < arrays.size(); ++i)
    state.optimizer.push_back(Buffer::zeros(arrays.shapes[i]));
  return state;
}

}  // namespace ostro::train
