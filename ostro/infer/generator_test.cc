// Generation against the plain forward pass: the same bits at every cut, bucket and engine.
#include "ostro/infer/generator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "ostro/cpu/engine/engine.h"
#include "ostro/infer/log_probs.h"
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
      : engine(e), functions(models::model_functions<Decoder>(tiny(), kTokens, compute)) {
    DefaultInterpreter use;
    model = nn::compute(
        jit([](const Array& key) { return Decoder::init(tiny(), kTokens, key); })(make_key(3)), compute);
  }

  std::unique_ptr<Generator> generator(int64_t max_length = kContext) {
    std::vector<runtime::Buffer> params;
    for (const Array& a : tree_leaves(model)) params.push_back(a.buffer());
    return Generator::create(functions, std::move(params), engine, max_length).value();
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
  models::ModelFunctions functions;
  Decoder model;
  std::function<Array(const Decoder&, const Array&)> forward =
      jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
};

std::vector<int32_t> prompt(int64_t n) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<int32_t>((i * i * 3 + 5 * i + 1) % kTokens));
  return out;
}

TEST_CASE("greedy generation is the argmax of the plain forward pass, at every bucket's edge") {
  Fixture f;
  const auto g = f.generator();
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 32, 33}) {
    CAPTURE(n);
    CHECK(g->generate(prompt(n), {.max_new_tokens = 3}).value() == f.greedy(prompt(n), 3));
  }
  // The last place of the context: one more token, then there is no room.
  CHECK(g->generate(prompt(kContext - 1), {.max_new_tokens = 5}).value() ==
        f.greedy(prompt(kContext - 1), 1));
  // A context that is no bucket, and one below the smallest.
  CHECK(f.generator(20)->generate(prompt(17), {.max_new_tokens = 9}).value() == f.greedy(prompt(17), 3));
  CHECK(f.generator(5)->generate(prompt(3), {.max_new_tokens = 9}).value() == f.greedy(prompt(3), 2));
  // A call leaves nothing behind for the next.
  CHECK(g->generate(prompt(2), {.max_new_tokens = 6}).value() == f.greedy(prompt(2), 6));
}

TEST_CASE("what cannot be generated is refused with the numbers") {
  Fixture f;
  const auto g = f.generator();
  CHECK(g->generate(prompt(kContext), {})
            .error()
            .message()
            .find("the prompt has 40 tokens, the model's context 40") != std::string::npos);
  CHECK_FALSE(g->generate({}, {}).ok());
  CHECK_FALSE(Generator::create(f.functions, {}, f.engine, 1).ok());
  models::ModelFunctions no_cache = f.functions;
  no_cache.decode = {};
  CHECK_FALSE(Generator::create(no_cache, {}, f.engine, 8).ok());
  CHECK(g->generate(prompt(4), {.max_new_tokens = 0}).value().empty());
}

TEST_CASE("eos ends behind itself; the callback sees every token and may stop") {
  Fixture f;
  const auto g = f.generator();
  const auto all = g->generate(prompt(4), {.max_new_tokens = 12}).value();
  REQUIRE(all.size() == 12);
  const int32_t eos = all[5];
  const auto first = std::find(all.begin(), all.end(), eos);
  CHECK(g->generate(prompt(4), {.max_new_tokens = 12, .stops = {-5, eos}}).value() ==
        std::vector<int32_t>(all.begin(), first + 1));
  std::vector<int32_t> seen;
  const auto some = g->generate(prompt(4), {.max_new_tokens = 12}, [&](int32_t t) {
                       seen.push_back(t);
                       return seen.size() < 3;
                     }).value();
  CHECK(seen == std::vector<int32_t>(all.begin(), all.begin() + 3));
  CHECK(some == seen);
}

TEST_CASE("a sample is a function of seed and position alone") {
  Fixture f;
  const auto g = f.generator();
  const auto sample = [&](uint64_t seed, double temperature) {
    return g->generate(prompt(4), {.max_new_tokens = 20, .temperature = temperature, .seed = seed}).value();
  };
  const auto one = sample(1, 1.0);
  CHECK(one == sample(1, 1.0));
  CHECK(one ==
        f.generator()->generate(prompt(4), {.max_new_tokens = 20, .temperature = 1.0, .seed = 1}).value());
  CHECK(one != sample(2, 1.0));
  CHECK(one != sample(1, 0));
  CHECK(sample(1, 1e-6) == sample(2, 0));  // cold enough is greedy
}

TEST_CASE("rows of start and next are those of the plain forward pass; log-probabilities are its losses") {
  Fixture f;
  const auto g = f.generator();
  check_ok(g->prepare());
  CHECK(g->program_hash().value() == f.generator()->program_hash().value());
  CHECK(g->program_hash().value() != f.generator(20)->program_hash().value());
  const std::vector<int32_t> tokens = prompt(22);
  const auto losses = g->score(tokens, 22).value();
  const auto all = f.logits(tokens);
  for (const size_t first : {1, 5, 17, 22}) {
    auto rows = g->start(std::span(tokens).first(first)).value();
    for (size_t n = first; n < tokens.size(); ++n) {
      const auto row = rows.as<float>().last(kTokens);
      CHECK(std::equal(row.begin(), row.end(), all.begin() + static_cast<int64_t>(n - 1) * kTokens));
      CHECK(LogProbs(row, 1).of(tokens[n]) == -losses[n - 1]);
      rows = g->next(tokens[n]).value();
    }
  }
  CHECK_FALSE(g->start({}).ok());
  CHECK_FALSE(g->start(prompt(kContext + 1)).ok());
  REQUIRE(g->start(prompt(kContext)).ok());
  CHECK_FALSE(g->next(1).ok());
}

TEST_CASE("scores have the same bits for every prefill, as the loss of the whole row, on both engines") {
  const auto compiled = cpu::make_cpu_engine().value();
  for (const DType compute : {DType::f32, DType::bf16}) {
    std::vector<float> before;
    for (runtime::Engine* engine : {&interpreter(), compiled.get()}) {
      Fixture f(compute, *engine);
      const auto g = f.generator();
      const std::vector<int32_t> tokens = prompt(22);
      const auto whole = g->score(tokens, 22).value();
      REQUIRE(whole.size() == 21);
      CHECK(std::all_of(whole.begin(), whole.end(), [](float x) { return std::isfinite(x) && x > 0; }));
      for (const int64_t prefill : {0, 1, 2, 15, 16, 17, 21, 100})
        CHECK(g->score(tokens, prefill).value() == whole);
      const auto row = f.logits(tokens);
      const Array loss =
          cross_entropy(f32({{"pos", 21}, {"vocab", kTokens}}, {row.begin(), row.end() - kTokens}),
                        i32({{"pos", 21}}, {tokens.begin() + 1, tokens.end()}), "vocab");
      CHECK(values<float>(loss) == whole);
      if (!before.empty()) CHECK(before == whole);
      before = whole;
    }
  }
  Fixture f;
  const auto g = f.generator(8);
  CHECK(g->score(prompt(1), 1).value().empty());
  CHECK(g->score(prompt(8), 8).value().size() == 7);
  CHECK_FALSE(g->score(prompt(9), 8).ok());
}

}  // namespace
}  // namespace ostro::infer
