// Setup, Trail: a tiny training run on the workers of a mesh, and everything that a chain could record of it,
// for tests.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/faulty_engine_for_test.h"
#include "ostro/fleet/threads/workers.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/train/options/llama_for_test.h"

namespace ostro::fleet {

using runtime::Buffer;

inline constexpr int64_t kVocab = 19;

struct Setup {
  train::TrainConfig config;
  train::CanonicalPrograms programs;
};

inline std::unique_ptr<runtime::Engine> compiled_engine(int threads = 2) {
  return cpu::make_cpu_engine({.isa = {}, .threads = threads, .generated_code = false}).value();
}

inline Setup make_setup(train::TrainConfig c) {
  check_ok(c.resolve());
  const auto model = c.model_options().functions(kVocab, train::compute_dtype(c));
  train::CanonicalPrograms programs = train::make_programs(c, model).value();
  return {std::move(c), std::move(programs)};
}

inline train::TrainConfig tiny_config(int64_t batch, const spmd::Cells& cells) {
  train::TrainConfig c;
  auto& o = train::llama(c);
  o.seq_len = 6;
  o.hidden_dim = 12;
  o.intermediate_dim = 10;
  o.num_layers = 2;
  o.num_heads = 2;
  o.num_kv_heads = 1;
  c.data.train_urls = {"text"};
  c.trainer.train_batch_size = batch;
  c.trainer.num_train_steps = 20;
  c.numerics.leaf_examples = 1;
  c.numerics.cells = cells;
  c.trainer.watch_norms = {"gradients", "parameters"};
  std::get<optim::AdamOptions>(c.optimizer).learning_rate = 1e-2;
  return c;
}

inline Setup tiny(int64_t batch, const spmd::Cells& cells, bool leaf_gradients = false, int64_t seed = 0) {
  train::TrainConfig c = tiny_config(batch, cells);
  c.trainer.seed = seed;
  c.chain.leaf_gradients = leaf_gradients;
  return make_setup(std::move(c));
}

// A batch whose rows all differ, also in the number of tokens that count.
inline train::BatchArrays batch_of(int64_t rows, int64_t step) {
  const ir::Shape ids{ir::DType::i32, {{"batch", rows}, {"pos", 6}}};
  Buffer tokens = Buffer::empty(ids), targets = Buffer::empty(ids),
         mask = Buffer::empty(ids.with_dtype(ir::DType::f32));
  for (int64_t i = 0; i < ids.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    tokens.mutable_as<int32_t>()[at] = static_cast<int32_t>((i * i + 3 + step) % kVocab);
    targets.mutable_as<int32_t>()[at] = static_cast<int32_t>((i * 5 + i * i + step) % kVocab);
    mask.mutable_as<float>()[at] = i % 5 == 0 || i % 7 == 3 ? 0.0f : 1.0f;
  }
  return {tokens, targets, mask};
}

// Workers that run different leaves and own cells of the parameters along `axis`.
inline WorkerOptions data_parallel(int64_t workers, const spmd::Cells& cells,
                                   const std::string& axis = "embed") {
  return {{{{{"data", workers}}}, {}, {{axis, "data"}}}, cells};
}

// Everything a chain could record of some steps, and the final state.
struct Trail {
  std::vector<train::StepResult> steps;
  train::State state;
  int64_t bytes = 0;
};

inline Trail train(const Setup& s, train::StepRunner& runner, runtime::Engine& engine, int steps) {
  Trail t;
  t.state = train::initial_state(s.programs, engine, s.config.trainer.seed).value();
  for (int i = 0; i < steps; ++i) {
    auto r =
        runner.run(t.state, batch_of(s.config.trainer.train_batch_size.at(0), i % 2),
                   optim::step_scalars(s.config.optimizer, t.state.step, s.config.trainer.num_train_steps));
    REQUIRE_MESSAGE(r.ok(), (r.ok() ? "" : r.error().message()));
    CHECK(r->ok());
    t.steps.push_back(std::move(r).value());
  }
  check_ok(runner.collect(t.state, train::StepRunner::Collect::kAll));
  t.bytes = runner.bytes_sent();
  return t;
}

inline Trail train_alone(const Setup& s, int steps) {
  const auto engine = interp::make_interpreter();
  return train(s, *train::make_step_runner(s.programs, *engine, "none").value(), *engine, steps);
}

// `fault` is one of FaultyEngine.
inline Trail train_on(const Setup& s, const WorkerOptions& options, int steps, std::string fault = "") {
  FaultyEngine engine(interp::make_interpreter(), std::move(fault));
  auto runner = make_worker_runner(s.programs, engine, "none", options);
  REQUIRE_MESSAGE(runner.ok(), (runner.ok() ? "" : runner.error().message()));
  return train(s, **runner, engine, steps);
}

inline Trail train_workers(const Setup& s, int64_t workers, int steps, std::string fault = "") {
  return train_on(s, data_parallel(workers, s.config.numerics.cells), steps, std::move(fault));
}

inline bool same(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i)
    equal = a[i].shape() == b[i].shape() &&
            std::memcmp(a[i].bytes().data(), b[i].bytes().data(), a[i].bytes().size()) == 0;
  return equal;
}

inline bool same(const train::StepResult& a, const train::StepResult& b) {
  const std::vector<double> x = train::as_list(a.measured), y = train::as_list(b.measured);
  bool equal = x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0 &&
               a.weight == b.weight && a.prints == b.prints && a.watched == b.watched &&
               a.leaves.size() == b.leaves.size();
  for (size_t i = 0; equal && i < a.leaves.size(); ++i)
    equal = std::memcmp(&a.leaves[i].loss_sum, &b.leaves[i].loss_sum, sizeof(double)) == 0 &&
            a.leaves[i].weight == b.leaves[i].weight &&
            a.leaves[i].gradient_prints == b.leaves[i].gradient_prints;
  return equal;
}

inline bool same(const Trail& a, const Trail& b) {
  bool equal = a.steps.size() == b.steps.size() && a.state.step == b.state.step;
  for (size_t i = 0; equal && i < a.steps.size(); ++i) equal = same(a.steps[i], b.steps[i]);
  return equal && same(a.state.params, b.state.params) && same(a.state.optimizer, b.state.optimizer);
}

inline void check_alive(const Trail& t) {
  CHECK(t.steps.back().loss() < t.steps.front().loss());
  for (const Buffer& b : t.state.params)
    for (float x : b.as<float>()) CHECK(std::isfinite(x));
}

}  // namespace ostro::fleet
