// The walking skeleton: a tiny Llama through trace, grad, interpreter and optimizer.
#include "ostro/train/step/step.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "ostro/checkpoint/save.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/numerics/arrays.h"
#include "ostro/train/options/llama_for_test.h"
#include "ostro/train/programs/watch.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::train {
namespace {

TrainConfig tiny_step_config() {
  TrainConfig c;
  auto& o = llama(c);
  o.seq_len = 8;
  o.hidden_dim = 8;
  o.intermediate_dim = 12;
  o.num_layers = 2;
  o.num_heads = 2;
  o.num_kv_heads = 1;
  c.data.train_urls = {"text"};
  c.trainer.train_batch_size = 4;
  c.trainer.num_train_steps = 20;
  c.numerics.leaf_examples = 2;
  c.numerics.cells = {{"embed", 4}};
  std::get<optim::AdamOptions>(c.optimizer).learning_rate = 1e-2;
  check_ok(c.resolve());
  return c;
}

BatchArrays batch_of(const TrainConfig& c, int64_t vocab) {
  const ir::Shape ids{ir::DType::i32,
                      {{"batch", c.trainer.train_batch_size.at(0)}, {"pos", c.model_options().seq_len()}}};
  runtime::Buffer tokens = runtime::Buffer::empty(ids), targets = runtime::Buffer::empty(ids),
                  mask = runtime::Buffer::empty(ids.with_dtype(ir::DType::f32));
  for (int64_t i = 0; i < ids.count(); ++i) {
    tokens.mutable_as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7 + 3) % vocab);
    targets.mutable_as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(((i + 1) * 7 + 3) % vocab);
    mask.mutable_as<float>()[static_cast<size_t>(i)] = i % 5 == 0 ? 0.0f : 1.0f;
  }
  return {tokens, targets, mask};
}

struct Steps {
  std::vector<StepResult> results;
  State state;  // after them
  int64_t arena_bytes = 0;
};

Steps run_steps(const TrainConfig& c, runtime::Engine& engine, int64_t vocab, int steps) {
  const auto model = c.model_options().functions(vocab, compute_dtype(c));
  const CanonicalPrograms programs = make_programs(c, model).value();
  Steps out{{}, initial_state(programs, engine, c.trainer.seed).value()};
  auto runner = make_step_runner(programs, engine, "none").value();
  out.arena_bytes = runner->leaf_info().arena_bytes;
  for (int i = 0; i < steps; ++i) {
    const auto scalars = optim::step_scalars(c.optimizer, out.state.step, c.trainer.num_train_steps);
    out.results.push_back(runner->run(out.state, batch_of(c, vocab), scalars).value());
    CHECK(out.results.back().ok());
  }
  return out;
}

std::vector<float> losses(const TrainConfig& c, int steps) {
  auto engine = interp::make_interpreter();
  std::vector<float> out;
  for (const StepResult& r : run_steps(c, *engine, 17, steps).results) {
    CHECK(r.leaves.size() == 2);
    out.push_back(r.loss());
  }
  return out;
}

template <typename T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// What differs first, in words; empty when everything that a chain could record of the steps has equal bits.
std::string difference(const Steps& a, const Steps& b) {
  if (a.results.size() != b.results.size()) return "number of steps";
  for (size_t i = 0; i < a.results.size(); ++i) {
    const StepResult &x = a.results[i], &y = b.results[i];
    const std::string step = "step " + std::to_string(i) + ": ";
    if (x.leaves.size() != y.leaves.size()) return step + "number of leaves";
    for (size_t k = 0; k < x.leaves.size(); ++k) {
      if (!same_bits(x.leaves[k].loss_sum, y.leaves[k].loss_sum)) return step + "a leaf's loss";
      if (x.leaves[k].gradient_prints != y.leaves[k].gradient_prints) return step + "a leaf's gradients";
    }
    if (!same_bits(x.loss(), y.loss())) return step + "loss";
    if (!same_bits(x.gradient_norm(), y.gradient_norm())) return step + "gradient norm";
    if (x.prints != y.prints) return step + "parameters";
  }
  for (const auto part : {&State::params, &State::optimizer})
    for (size_t k = 0; k < (a.state.*part).size(); ++k) {
      const runtime::Buffer &x = (a.state.*part)[k], &y = (b.state.*part)[k];
      if (x.shape() != y.shape() || std::memcmp(x.bytes().data(), y.bytes().data(), x.bytes().size()) != 0)
        return "the state after the last step";
    }
  return "";
}

TEST_CASE("a tiny Llama learns a fixed batch, in f32 and in bf16; another seed differs") {
  for (const char* mp : {"f32", "p=f32,c=bfloat16"}) {
    TrainConfig c = tiny_step_config();
    c.trainer.mp = mp;
    const auto a = losses(c, 12);
    CHECK(a.front() > 2.7f);
    CHECK(a.back() < 0.8f * a.front());
    c.trainer.seed = 1;
    CHECK(losses(c, 1)[0] != a[0]);
  }
}

TEST_CASE("steps whose head runs in tiles of tokens have the interpreter's bits, and those of a whole head") {
  constexpr int64_t kVocab = 311;
  const auto steps_with = [](const TrainConfig& c, int64_t head_tile) {
    auto engine = cpu::make_cpu_engine({.threads = 2, .generated_code = false, .head_tile = head_tile});
    REQUIRE(engine.ok());
    return run_steps(c, **engine, kVocab, 3);
  };
  for (const std::string mp : {"f32", "p=f32,c=bfloat16"})
    for (bool tied : {false, true}) {
      CAPTURE(mp);
      CAPTURE(tied);
      TrainConfig c = tiny_step_config();
      c.trainer.mp = mp;
      c.chain.leaf_gradients = true;
      llama(c).seq_len = 24;  // a leaf of 48 tokens: a tile and a half
      llama(c).tie_word_embeddings = tied;
      const auto interpreter = interp::make_interpreter();
      const Steps reference = run_steps(c, *interpreter, kVocab, 3);
      CHECK(reference.results[0].leaves.size() == 2);
      const Steps tiles = steps_with(c, 32), whole = steps_with(c, -1);
      CHECK(difference(tiles, reference) == "");
      CHECK(difference(whole, reference) == "");
      // The logits of all tokens of a leaf were in memory at no time.
      CHECK(tiles.arena_bytes < whole.arena_bytes);
      // The same sums over the vocabulary in another order are told from these.
      c.numerics.leaves = {{"vocab", 2}};
      check_ok(c.resolve());
      CHECK(difference(steps_with(c, 32), reference).find("step 0: ") == 0);
    }
}

// The square root of the sum of squares, in the order of a plain loop: near the norm, whatever its order.
double plain_norm(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

TEST_CASE("watched norms: of each layer, the same from both engines, and the states are those without") {
  TrainConfig c = tiny_step_config();
  const auto interpreter = interp::make_interpreter();
  const Steps without = run_steps(c, *interpreter, 17, 3);
  c.trainer.watch_norms = {"gradients", "parameters"};
  check_ok(c.resolve());
  const auto model = c.model_options().functions(17, compute_dtype(c));
  const CanonicalPrograms programs = make_programs(c, model).value();
  auto cpu = cpu::make_cpu_engine({.threads = 2, .generated_code = false});
  REQUIRE(cpu.ok());
  const Steps steps = run_steps(c, *interpreter, 17, 3), compiled = run_steps(c, **cpu, 17, 3);
  CHECK(difference(steps, without) == "");
  CHECK(difference(compiled, steps) == "");
  for (size_t i = 0; i < steps.results.size(); ++i) {
    const auto norms = watched_norms(programs, steps.results[i]);
    CHECK(norms == watched_norms(programs, compiled.results[i]));
    double squares = 0;
    for (const auto& [name, norm] : norms)
      if (name.starts_with("watch/grad_norm/")) squares += norm * norm;
    // Other orders of one sum.
    CHECK(std::abs(std::sqrt(squares) / steps.results[i].gradient_norm() - 1) < 1e-12);
  }
  const auto norms = watched_norms(programs, steps.results.back());
  std::map<std::string, double> by_name(norms.begin(), norms.end());
  size_t layers = 0;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    const std::span<const float> all = steps.state.params[k].as<float>();
    const bool stacked = model.shapes[k].has("layers");
    const size_t parts = stacked ? 2 : 1, size = all.size() / parts;
    for (size_t i = 0; i < parts; ++i) {
      const std::string name =
          "watch/param_norm/" + model.paths[k] + (stacked ? "[" + std::to_string(i) + "]" : "");
      CAPTURE(name);
      REQUIRE(by_name.contains(name));
      CHECK(std::abs(by_name[name] / plain_norm(all.subspan(i * size, size)) - 1) < 1e-12);
      layers += stacked ? 1 : 0;
    }
  }
  CHECK(layers > 4);
  CHECK(norms.size() == 2 * (layers + model.paths.size() - layers / 2));
}

TEST_CASE(
    "arrays that are rounded as they are read have the bits of the rounded ones, however they are cut") {
  for (const checkpoint::Extents& cell : {checkpoint::Extents{}, {1, 3, 4}, {2, 2, 3}}) {
    io::MemoryFileSystem fs;
    const ir::Shape wide{ir::DType::f32, {{"layers", 3}, {"embed", 5}, {"mlp", 4}}};
    runtime::Buffer values = runtime::Buffer::empty(wide);
    for (size_t i = 0; i < 60; ++i)
      values.mutable_as<float>()[i] = 1.0F + 0x1p-12F * static_cast<float>(i * i);
    checkpoint::TensorSpec spec{"model/w", "f32", {"layers", "embed", "mlp"}, {3, 5, 4}, cell};
    const auto saved = checkpoint::save(fs, "run", {.step = 7},
                                        std::vector<checkpoint::Tensor>{{spec, values.bytes(), nullptr}});
    REQUIRE(saved.ok());
    StateArrays arrays{1, {"model/w"}, {wide.with_dtype(ir::DType::bf16)}, {0}};
    CHECK(!load_state(fs, saved->path, arrays, {}).ok());  // it is f32
    arrays.rounded = true;
    const auto loaded = load_state(fs, saved->path, arrays, {});
    if (!loaded.ok()) FAIL(loaded.error().message());
    std::vector<std::byte> rounded(120);
    numerics::narrow(values.as<float>(), rounded);
    CHECK(std::ranges::equal(loaded->state.params[0].bytes(), rounded));
  }
}

TEST_CASE("program text round-trips and hashes") {
  const TrainConfig c = tiny_step_config();
  const CanonicalPrograms p = make_programs(c, c.model_options().functions(17, compute_dtype(c))).value();
  auto again = parse_programs(print_programs(p));
  REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
  CHECK(programs_hash(*again) == programs_hash(p));
  CHECK(print_programs(*again) == print_programs(p));
}

}  // namespace
}  // namespace ostro::train
