// A decoder with adapters and with frozen parameters: what it computes, and what is trained.
#include "ostro/models/frozen.h"

#include <doctest/doctest.h>

#include "ostro/models/decoder/decoder.h"
#include "ostro/models/model_options.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::models {
namespace {

using namespace test;

ModelOptionsOf<DecoderOptions, Decoder> small(bool tied = false) {
  ModelOptionsOf<DecoderOptions, Decoder> m;
  m.options.seq_len = 6;
  m.options.hidden_dim = 8;
  m.options.intermediate_dim = 12;
  m.options.num_layers = 2;
  m.options.num_heads = 4;
  m.options.num_kv_heads = 2;
  m.options.initializer_range = 0.3;
  m.options.tie_word_embeddings = tied;
  check_ok(m.resolve());
  return m;
}

// The losses of a model with its initial parameters, `change` applied to them.
std::vector<float> losses(const ModelFunctions& f,
                          const std::function<Array(const std::string&, const Array&)>& change = {}) {
  const auto run = jit([&](const Array& key) {
    Arrays leaves = f.init(key);
    for (size_t i = 0; i < leaves.size(); ++i)
      if (change) leaves[i] = change(f.paths[i], leaves[i]);
    const std::vector<Axis> axes = {{"batch", 2}, {"pos", 6}};
    const Array tokens = broadcast_to((iota({"pos", 6}) * 5 + iota({"batch", 2}) * 3) % 11, axes);
    return f.loss(leaves, Batch{tokens, (tokens + 1) % 11, ones(axes), {}}).per_token;
  });
  return values<float>(run(make_key(1)));
}

TEST_CASE("an adapter whose b is zero changes no bit; each of them changes the loss when it is not") {
  DefaultInterpreter use;
  const auto m = small();
  for (const DType compute : {DType::f32, DType::bf16}) {
    nn::LoraSpec spec;
    spec.rank = 2;
    spec.targets = {"*"};
    const ModelFunctions base = m.functions(11, compute), f = m.functions(11, compute, spec);
    CHECK(f.matrices.size() == 8);
    const auto without = losses(base);
    CHECK(losses(f) == without);
    if (compute == DType::bf16) continue;
    for (const nn::AdaptedMatrix& a : f.matrices) {
      REQUIRE(a.has_adapter);
      const std::string b = a.linear + "/lora/" + a.name + "/b";
      CAPTURE(b);
      CHECK(losses(f, [&](const std::string& path, const Array& v) { return path == b ? v + 0.5 : v; }) !=
            without);
    }
  }
}

TEST_CASE("frozen parameters come last, in the dtype in which they are read, and no loss has another bit") {
  DefaultInterpreter use;
  const auto m = small(true);
  nn::LoraSpec spec;
  spec.rank = 2;
  for (const DType compute : {DType::f32, DType::bf16}) {
    const ModelFunctions f = m.functions(11, compute, spec);
    CHECK(f.trained() == f.paths.size());
    const ModelFunctions g = train_only(
        f, [](const std::string& path) { return path.find("/lora/") != std::string::npos; }, compute);
    CHECK(g.trained() == 14);
    CHECK(g.paths.size() == f.paths.size());
    for (size_t i = 0; i < g.paths.size(); ++i) {
      CHECK((g.paths[i].find("/lora/") != std::string::npos) == (i < g.trained()));
      CHECK(g.shapes[i].dtype == (i < g.trained() ? DType::f32 : compute));
    }
    CHECK(losses(g) == losses(f));
  }
}

TEST_CASE("a frozen router stays f32, in which it is read") {
  DefaultInterpreter use;
  ModelOptionsOf<DecoderOptions, Decoder> m = small();
  m.options.num_experts = 4;
  check_ok(m.resolve());
  const ModelFunctions f = m.functions(11, DType::bf16),
                       g = train_only(
                           f, [](const std::string& path) { return path == "model/head/weight"; },
                           DType::bf16);
  CHECK(g.trained() == 1);
  for (size_t i = 1; i < g.paths.size(); ++i)
    CHECK(g.shapes[i].dtype == (g.paths[i].ends_with("/moe/router/weight") ? DType::f32 : DType::bf16));
  CHECK(losses(g) == losses(f));
}

TEST_CASE("merged parameters are those of the model without adapters, in its order") {
  DefaultInterpreter use;
  const auto m = small();
  nn::LoraSpec spec;
  spec.rank = 2;
  const ModelFunctions base = m.functions(11, DType::f32),
                       f = train_only(
                           m.functions(11, DType::f32, spec),
                           [](const std::string& path) { return path.ends_with("/a"); }, DType::f32);
  const auto merged = jit([&](const Array& key) { return f.merged(f.init(key)); });
  const auto init = jit([&](const Array& key) { return base.init(key); });
  const Arrays here = merged(make_key(1)), there = init(make_key(1));
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) CHECK(same_bits(here[i], there[i]));
}

}  // namespace
}  // namespace ostro::models
