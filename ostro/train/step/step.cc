#include "ostro/train/step/step.h"

#include <fmt/format.h>

#include <numeric>

#include "ostro/base/profile.h"
#include "ostro/ir/program/builder.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/tree.h"
#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/step/faulty_gradients.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

using Buffers = std::vector<Buffer>;

Buffers take(Buffers& from, size_t first, size_t count) {
  Buffers out(std::make_move_iterator(from.begin() + static_cast<int64_t>(first)),
              std::make_move_iterator(from.begin() + static_cast<int64_t>(first + count)));
  return out;
}

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
  SerialRunner(UpdateLayout at, int64_t rows, size_t measured)
      : at_(at), n_(at.n), trained_(at.trained), rows_(rows), measured_(measured) {}

  Status compile(const CanonicalPrograms& p, runtime::Engine& engine, const std::string& remat) {
    ASSIGN_OR_RETURN(leaf_, engine.compile(p.leaf, leaf_options(remat)));
    ASSIGN_OR_RETURN(update_, engine.compile(p.update, update_options(p)));
    std::vector<ir::Shape> gradients;
    for (size_t i = 0; i < trained_; ++i) {
      gradients.push_back(p.leaf.body.shape(p.leaf.body.results[2 + i]));
      gradient_bytes_ += gradients.back().bytes();
    }
    memory_ = &engine.memory();
    for (const ir::Shape& shape : state_arrays(p).shapes) state_bytes_ += shape.bytes();
    expert_loads_ = expert_loads(p.update);
    ASSIGN_OR_RETURN(add_, engine.compile(add_program(gradients), add_options(trained_)));
    return Status();
  }

  Result<StepResult> run(State& state, const BatchArrays& batch, const std::vector<float>& scalars) override {
    StepResult result;
    Status failed;
    ASSIGN_OR_RETURN(state.params, runtime::all_to(std::move(state.params), *memory_));  // for all leaves
    numerics::TreeFold<Buffers, std::function<Buffers(Buffers, Buffers)>> fold([&](Buffers a, Buffers b) {
      if (!failed.ok()) return a;
      phase("tree add");
      for (Buffer& x : b) a.push_back(std::move(x));
      auto sum = add_->run(std::move(a));
      if (sum.ok()) return std::move(sum).value();
      failed = sum.error();
      return Buffers();
    });
    const int64_t leaves = batch[0].shape().axes[0].size / rows_;
    std::vector<Buffers> outputs;  // by leaf, without gradients: read when all leaves have been started
    for (int64_t i = 0; i < leaves; ++i) {
      phase("leaf", i);
      Buffers inputs = state.params;
      for (Buffer& b : rows_of(batch, i * rows_, rows_)) inputs.push_back(std::move(b));
      ASSIGN_OR_RETURN(Buffers out, leaf_->run(std::move(inputs)));
      Buffers made = take(out, 2, trained_);
      faulty_.push(i, leaves, std::move(made), out[1],
                   [&](Buffers gradients) { fold.push(std::move(gradients)); });
      RETURN_IF_ERROR(failed);
      outputs.push_back(std::move(out));
    }
    Buffers gradients = fold.finish();
    RETURN_IF_ERROR(failed);
    faulty_.finish(state.step, gradients);
    for (const Buffers& out : outputs) {
      ASSIGN_OR_RETURN(LeafResult leaf, leaf_result(out, trained_, measured_));
      result.leaves.push_back(std::move(leaf));
    }

    phase("update");
    const auto [loss_sum, weight] = join_losses(result.leaves);
    result.weight = weight;
    result.measures = join_measures(result.leaves);
    Buffers inputs = std::move(state.params);
    for (Buffers* part : {&state.kept, &gradients})
      for (Buffer& b : *part) inputs.push_back(std::move(b));
    state.kept.clear();
    const size_t count = result.leaves.size();
    inputs.push_back(Buffer::scalar(ir::DType::f64, faulty_.loss(loss_sum, weight, count)));
    inputs.push_back(Buffer::scalar(ir::DType::f64, faulty_.weight(weight, count)));
    for (const float s : scalars) inputs.push_back(Buffer::scalar(ir::DType::f32, s));
    gradients.clear();
    ASSIGN_OR_RETURN(Buffers out, update_->run(std::move(inputs)));
    state.params = take(out, 0, n_);
    state.kept = take(out, n_, at_.kept);
    ASSIGN_OR_RETURN(result.loss, out[at_.loss()].scalar<float>());
    ASSIGN_OR_RETURN(result.gradient_norm, out[at_.loss() + 1].scalar<double>());
    for (size_t i = 0; i < at_.norms; ++i) {
      ASSIGN_OR_RETURN(result.group_norms.emplace_back(), out[at_.norm(i)].scalar<double>());
    }
    ASSIGN_OR_RETURN(const auto ok, out[at_.loss() + 2].scalar<uint8_t>());
    result.ok = ok != 0;
    for (size_t i = 0; i < n_; ++i) {
      ASSIGN_OR_RETURN(result.prints.emplace_back(), fingerprint_lanes(out[at_.prints() + i]));
    }
    for (const size_t k : expert_loads_) {
      ASSIGN_OR_RETURN(result.expert_loads.emplace_back(), state.params[k].to_host());
    }
    if (result.ok) ++state.step;
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
  UpdateLayout at_;
  size_t n_, trained_;
  int64_t rows_;
  size_t measured_;
  std::vector<size_t> expert_loads_;
  int64_t gradient_bytes_ = 0, state_bytes_ = 0;
  runtime::Memory* memory_ = nullptr;  // the engine's
  FaultyGradients faulty_;
  std::unique_ptr<runtime::Executable> leaf_, update_, add_;
};

}  // namespace

int64_t WorkerLoad::total_sent() const {
  int64_t total = 0;
  for (const Sent& s : sent) total += s.bytes;
  return total;
}

runtime::CompileOptions leaf_options(const std::string& remat) { return {.donate = {}, .remat = remat}; }

runtime::CompileOptions update_options(size_t arrays) { return {.donate = first_inputs(arrays)}; }

runtime::CompileOptions update_options(const CanonicalPrograms& p) {
  return update_options(update_layout(p).loss_sum());
}

runtime::CompileOptions add_options(size_t n) { return {.donate = first_inputs(n)}; }

Result<std::array<int64_t, 2>> fingerprint_lanes(const Buffer& print) {
  std::array<int64_t, 2> lanes{};
  RETURN_IF_ERROR(print.read(std::as_writable_bytes(std::span(lanes))));
  return lanes;
}

size_t parameter_count(const CanonicalPrograms& p) { return p.init.body.results.size(); }

size_t trained_count(const CanonicalPrograms& p) { return update_layout(p).trained; }

std::vector<ir::Shape> parameter_shapes(const CanonicalPrograms& p) {
  std::vector<ir::Shape> shapes;
  for (const ir::ValueId v : p.init.body.results) shapes.push_back(p.init.body.shape(v));
  return shapes;
}

int64_t leaf_rows(const CanonicalPrograms& p) {
  return p.leaf.body.shape(p.leaf.body.params[parameter_count(p)]).axes[0].size;
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

Result<LeafResult> leaf_result(const Buffers& results, size_t trained, size_t measured) {
  LeafResult leaf;
  ASSIGN_OR_RETURN(leaf.loss_sum, results[0].scalar<double>());
  ASSIGN_OR_RETURN(leaf.weight, results[1].scalar<double>());
  const size_t end = results.size() - measured;
  for (size_t k = 2 + trained; k < end; ++k) {
    ASSIGN_OR_RETURN(leaf.gradient_prints.emplace_back(), fingerprint_lanes(results[k]));
  }
  for (size_t k = end; k < results.size(); ++k) {
    ASSIGN_OR_RETURN(leaf.measures.emplace_back(), results[k].scalar<double>());
  }
  return leaf;
}

Result<std::unique_ptr<StepRunner>> make_step_runner(const CanonicalPrograms& p, runtime::Engine& engine,
                                                     const std::string& remat) {
  auto runner = std::make_unique<SerialRunner>(update_layout(p), leaf_rows(p), measure_names(p.leaf).size());
  RETURN_IF_ERROR(runner->compile(p, engine, remat));
  return std::unique_ptr<StepRunner>(std::move(runner));
}

Result<State> initial_state(const CanonicalPrograms& p, runtime::Engine& engine, int64_t seed) {
  ASSIGN_OR_RETURN(auto init, engine.compile(p.init));
  State state;
  ASSIGN_OR_RETURN(state.params, init->run({init_key(seed)}));
  const StateArrays arrays = state_arrays(p);
  for (size_t i = arrays.n; i < arrays.size(); ++i) state.kept.push_back(Buffer::zeros(arrays.shapes[i]));
  return state;
}

}  // namespace ostro::train
