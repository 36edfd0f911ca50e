// Generation against the plain forward pass: the same bits at every cut, padding and engine, layer by layer
// and by a model's cached step.
#include "ostro/infer/generate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "ostro/cpu/engine/engine.h"
#include "ostro/infer/rows_for_test.h"
#include "ostro/models/decoder/by_layer.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::infer {
namespace {

using namespace test;
using models::Decoder;
using models::DecoderOptions;

constexpr int64_t kTokens = 23, kContext = 40;

DecoderOptions tiny() {
  DecoderOptions o;
  o.seq_len = kContext;
  o.hidden_dim = 8;
  o.intermediate_dim = 12;
  o.num_layers = 2;
  o.num_heads = 2;
  o.num_kv_heads = 1;
  o.initializer_range = 0.5;
  check_ok(o.resolve());
  return o;
}

// A tiny model, its parameters, and its plain forward pass on one engine.
struct Fixture {
  explicit Fixture(DType compute = DType::f32, runtime::Engine& e = interpreter())
      : engine(e), compute_(compute), functions(models::model_functions<Decoder>(tiny(), kTokens, compute)) {
    DefaultInterpreter use;
    model = nn::compute(
        jit([](const Array& key) { return Decoder::init(tiny(), kTokens, key); })(make_key(3)), compute);
  }

  std::unique_ptr<RowRunner> runner(int64_t positions = kContext, bool by_layer = true) {
    std::vector<runtime::Buffer> params;
    for (const Array& a : tree_leaves(model)) params.push_back(a.buffer());
    std::optional<models::LayerFunctions> layers;
    if (by_layer) layers = models::decoder_by_layer(tiny(), kTokens, compute_, {}, functions.paths);
    return make_runner(functions, layers, std::move(params), engine, {positions, 3, 32}).value();
  }

  // f32 logits of every position of one row, flat.
  std::vector<float> logits(const std::vector<int32_t>& tokens) {
    set_default_engine(&engine);
    const auto out = values<float>(
        forward(model, i32({{"batch", 1}, {"pos", static_cast<int64_t>(tokens.size())}}, tokens)));
    DefaultInterpreter reset;
    return out;
  }

  std::vector<int32_t> greedy(std::vector<int32_t> tokens, int64_t count) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < count; ++i) {
      const auto all = logits(tokens);
      const auto last = all.end() - kTokens;
      out.push_back(static_cast<int32_t>(std::max_element(last, all.end()) - last));
      tokens.push_back(out.back());
    }
    return out;
  }

  runtime::Engine& engine;
  DType compute_;
  models::ModelFunctions functions;
  Decoder model;
  std::function<Array(const Decoder&, const Array&)> forward =
      jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
};

using Made = Result<std::vector<int32_t>>;

Made continued(RowRunner& runner, const std::vector<int32_t>& prompt, const SampleOptions& options,
               const std::function<bool(int32_t)>& on_token = {}) {
  const auto each = [&](size_t, int32_t token) { return !on_token || on_token(token); };
  auto made = generate(runner, {&prompt, 1}, options, each);
  if (!made.ok()) return made.error();
  return std::move((*made)[0]);
}

std::vector<int32_t> prompt(int64_t n) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<int32_t>((i * i * 3 + 5 * i + 1) % kTokens));
  return out;
}

TEST_CASE("greedy generation is the argmax of the plain forward pass, at every bucket's edge") {
  Fixture f;
  const auto g = f.runner();
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 32, 33}) {
    CAPTURE(n);
    CHECK(continued(*g, prompt(n), {.max_new_tokens = 3}).value() == f.greedy(prompt(n), 3));
  }
  // The last place of the context: one more token, then there is no room.
  CHECK(continued(*g, prompt(kContext - 1), {.max_new_tokens = 5}).value() ==
        f.greedy(prompt(kContext - 1), 1));
  // A context that is no bucket, and one below the smallest.
  CHECK(continued(*f.runner(20), prompt(17), {.max_new_tokens = 9}).value() == f.greedy(prompt(17), 3));
  CHECK(continued(*f.runner(5), prompt(3), {.max_new_tokens = 9}).value() == f.greedy(prompt(3), 2));
  // A call leaves nothing behind for the next.
  CHECK(continued(*g, prompt(2), {.max_new_tokens = 6}).value() == f.greedy(prompt(2), 6));
}

TEST_CASE("what cannot be generated is refused with the numbers") {
  Fixture f;
  const auto g = f.runner();
  CHECK(continued(*g, prompt(kContext), {})
            .error()
            .message()
            .find("the prompt has 40 tokens, the model's context 40") != std::string::npos);
  CHECK_FALSE(continued(*g, {}, {}).ok());
  CHECK(continued(*g, prompt(4), {.max_new_tokens = 0}).value().empty());
  const auto layers = models::decoder_by_layer(tiny(), kTokens, DType::f32, {}, f.functions.paths);
  std::vector<runtime::Buffer> params;
  for (const Array& a : tree_leaves(f.model)) params.push_back(a.buffer());
  CHECK_FALSE(make_runner(f.functions, layers, params, f.engine, {1, 1, 8}).ok());
  CHECK_FALSE(make_runner(f.functions, {}, params, f.engine, {1, 1, 8}).ok());
  models::ModelFunctions no_cache = f.functions;
  no_cache.decode = {};
  CHECK_FALSE(make_runner(no_cache, {}, params, f.engine, {8, 1, 8}).ok());
}

TEST_CASE("eos ends behind itself; the callback sees every token and may stop") {
  Fixture f;
  const auto g = f.runner();
  const auto all = continued(*g, prompt(4), {.max_new_tokens = 12}).value();
  REQUIRE(all.size() == 12);
  const int32_t eos = all[5];
  const auto first = std::find(all.begin(), all.end(), eos);
  CHECK(continued(*g, prompt(4), {.max_new_tokens = 12, .stops = {-5, eos}}).value() ==
        std::vector<int32_t>(all.begin(), first + 1));
  std::vector<int32_t> seen;
  const auto some = continued(*g, prompt(4), {.max_new_tokens = 12}, [&](int32_t t) {
                      seen.push_back(t);
                      return seen.size() < 3;
                    }).value();
  CHECK(seen == std::vector<int32_t>(all.begin(), all.begin() + 3));
  CHECK(some == seen);
}

TEST_CASE("a sample is a function of seed and position alone") {
  Fixture f;
  const auto g = f.runner();
  const auto sample = [&](uint64_t seed, double temperature) {
    return continued(*g, prompt(4), {.max_new_tokens = 20, .temperature = temperature, .seed = seed}).value();
  };
  const auto one = sample(1, 1.0);
  CHECK(one == sample(1, 1.0));
  CHECK(one ==
        continued(*f.runner(), prompt(4), {.max_new_tokens = 20, .temperature = 1.0, .seed = 1}).value());
  CHECK(one != sample(2, 1.0));
  CHECK(one != sample(1, 0));
  CHECK(sample(1, 1e-6) == sample(2, 0));  // cold enough is greedy
}

TEST_CASE("rows are those of the plain forward pass; log-probabilities are its losses") {
  Fixture f;
  const std::vector<int32_t> tokens = prompt(22);
  const auto all = f.logits(tokens);
  for (const bool by_layer : {true, false}) {
    const auto g = f.runner(kContext, by_layer);
    check_ok(g->prepare());
    CHECK(g->program_hash().value() == f.runner()->program_hash().value());
    CHECK(g->program_hash().value() != f.runner(20, by_layer)->program_hash().value());
    for (const size_t first : {0, 5, 21}) {
      const auto rows = logits_of(*g, tokens, first).value();
      CHECK(std::equal(rows.as<float>().begin(), rows.as<float>().end(),
                       all.begin() + static_cast<int64_t>(first) * kTokens, all.end()));
    }
    CHECK_FALSE(logits_of(*g, {}).ok());
    CHECK_FALSE(logits_of(*g, prompt(kContext + 1)).ok());
    REQUIRE(logits_of(*g, prompt(kContext)).ok());  // two steps of 32 rows at most
    for (int i = 0; i < 3; ++i) REQUIRE(g->open().ok());
    CHECK_FALSE(g->open().ok());
    const std::vector<int32_t> long_text = prompt(33);
    const RowChunk too_many{0, long_text, 0};
    CHECK_FALSE(g->step({&too_many, 1}).ok());
  }
}

TEST_CASE("losses have the same bits for every prefill, as the loss of the whole row, on both engines") {
  const auto compiled = cpu::make_cpu_engine().value();
  for (const DType compute : {DType::f32, DType::bf16}) {
    std::vector<float> before;
    for (runtime::Engine* engine : {&interpreter(), compiled.get()}) {
      Fixture f(compute, *engine);
      for (const bool by_layer : {true, false}) {
        const auto g = f.runner(kContext, by_layer);
        const std::vector<int32_t> tokens = prompt(22);
        const auto whole = losses(*g, tokens, 22).value();
        REQUIRE(whole.size() == 21);
        CHECK(std::all_of(whole.begin(), whole.end(), [](float x) { return std::isfinite(x) && x > 0; }));
        for (const int64_t prefill : {0, 1, 2, 15, 16, 17, 21})
          CHECK(losses(*g, tokens, prefill).value() == whole);
        const auto row = f.logits(tokens);
        const Array loss =
            cross_entropy(f32({{"pos", 21}, {"vocab", kTokens}}, {row.begin(), row.end() - kTokens}),
                          i32({{"pos", 21}}, {tokens.begin() + 1, tokens.end()}), "vocab");
        CHECK(values<float>(loss) == whole);
        if (!before.empty()) CHECK(before == whole);
        before = whole;
      }
    }
  }
}

TEST_CASE("a cache that no padding fits is filled to its last place") {
  Fixture f;
  for (const bool by_layer : {true, false}) {
    const auto g = f.runner(23, by_layer);
    const std::vector<int32_t> tokens = prompt(23);
    const auto whole = losses(*f.runner(), tokens, 22).value();
    for (const int64_t prefill : {1, 9, 17, 22}) CHECK(losses(*g, tokens, prefill).value() == whole);
  }
}

}  // namespace
}  // namespace ostro::infer
