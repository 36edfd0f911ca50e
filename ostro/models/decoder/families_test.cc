// Every family as a function: engines give the same bits, forward and backward, and the cached step those of
// the whole row.
#include "ostro/models/decoder/families.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ostro/config/yaml.h"
#include "ostro/grad/value_and_grad.h"
#include "ostro/models/decoder/decoder_for_test.h"

namespace ostro::models {
namespace {

using namespace test;

// Every 17th position's loss has no weight.
Batch batch_of(int64_t rows, int64_t pos) {
  std::vector<std::vector<int32_t>> tokens, targets;
  std::vector<float> mask;
  for (int64_t b = 0; b < rows; ++b) {
    tokens.push_back(row(b, pos));
    targets.push_back(row(b + 7, pos));
    for (int64_t i = 0; i < pos; ++i) mask.push_back(i % 17 == 3 ? 0.0f : 1.0f);
  }
  return {ids(tokens), ids(targets), f32({{"batch", rows}, {"pos", pos}}, mask), {}};
}

TEST_CASE("slow: families: both engines have the same loss and gradients, none of which is all zero") {
  const auto step = jit([](const Decoder& m, const Batch& batch) {
    auto [loss, grads] = value_and_grad([](const Decoder& model, const Batch& b) {
      const Loss l = model.loss(b);
      return sum(l.per_token * l.weight, {"batch", "pos"});
    })(m, batch);
    Arrays out{loss};
    for (const Array& a : tree_leaves(grads)) out.push_back(a);
    return out;
  });
  const Batch batch = batch_of(2, 20);
  for (const DecoderOptions& o : sampled_decoders(sized<size_t>(4, 99, 99)))
    for (const DType compute : {DType::f32, DType::bf16}) {
      CAPTURE(o.family->name);
      const Decoder m = model_of(o, compute);
      std::vector<std::string> paths = {"loss"};
      for_each_leaf(m, [&](const std::string& path, const Array&) { paths.push_back(path); });
      std::vector<Arrays> results;
      for (runtime::Engine* engine : engines()) {
        set_default_engine(engine);
        results.push_back(step(m, batch));
      }
      DefaultInterpreter reset;
      for (size_t i = 0; i < paths.size(); ++i) {
        CHECK_MESSAGE(same_bits(results[0][i], results[1][i]), paths[i]);
        const auto v = values<float>(results[0][i]);
        CHECK_MESSAGE(std::all_of(v.begin(), v.end(), [](float x) { return std::isfinite(x); }), paths[i]);
        CHECK_MESSAGE(std::any_of(v.begin(), v.end(), [](float x) { return x != 0; }), paths[i]);
      }
    }
}

TEST_CASE("slow: families: the cached step gives the bits of the whole row, in a batch, on both engines") {
  const auto logits = jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
  const auto step =
      jit([](const Decoder& m, const Array& tokens, const DecoderCache& cache, const Array& start) {
        auto [out, filled] = m.decode(tokens, cache, start);
        Arrays all{out};
        for (const Array& a : tree_leaves(filled)) all.push_back(a);
        return all;
      });
  const std::vector<int32_t> tokens = row(1, 20);
  std::set<std::vector<float>> seen;
  for (const DecoderOptions& o : sampled_decoders(sized<size_t>(4, 99, 99))) {
    CAPTURE(o.family->name);
    for (const DType compute : {DType::f32, DType::bf16}) {
      const Decoder m = model_of(o, compute);
      std::vector<float> first;
      for (runtime::Engine* engine : engines()) {
        CAPTURE(engine->info().name);
        set_default_engine(engine);
        const std::vector<float> whole = part(logits(m, ids({row(2, 20), tokens})), 1, 0, 20);
        if (first.empty()) first = whole;
        CHECK(equal_bits(first, whole));
        for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{17, 1, 2}, {1, 19}}) {
          DecoderCache cache = m.cache(1, 24, compute);
          int64_t at = 0;
          for (const int64_t n : cuts) {
            const std::vector<int32_t> piece(tokens.begin() + at, tokens.begin() + at + n);
            const auto out = step(m, ids({piece}), cache, i32({}, {static_cast<int32_t>(at)}));
            CHECK(equal_bits(part(out[0], 0, 0, n),
                             {whole.begin() + at * kVocab, whole.begin() + (at + n) * kVocab}));
            cache = tree_with_leaves(cache, {out.begin() + 1, out.end()});
            at += n;
          }
        }
        DefaultInterpreter reset;
      }
      CHECK_MESSAGE(seen.insert(first).second, "another family has the same logits");
    }
  }
}

TEST_CASE("a layer with a window sees that many keys, the others all") {
  DefaultInterpreter use;
  const auto logits = jit([](const Decoder& m, const Array& tokens) { return m.logits(tokens); });
  std::vector<int32_t> a = row(0, 20), b = a;
  b[0] = static_cast<int32_t>((b[0] + 1) % kVocab);
  for (const int64_t layers : {1, 2}) {  // each layer reaches window - 1 positions further back
    DecoderOptions o = small("mistral");
    o.num_layers = layers;
    const Decoder m = model_of(o, DType::f32);
    const Array la = logits(m, ids({a})), lb = logits(m, ids({b}));
    const int64_t reach = layers * (*o.sliding_window - 1);
    CHECK_FALSE(equal_bits(part(la, 0, reach, reach + 1), part(lb, 0, reach, reach + 1)));
    CHECK(equal_bits(part(la, 0, reach + 1, 20), part(lb, 0, reach + 1, 20)));
  }
}

TEST_CASE("layers are stacked by the shortest period, the rest lies in the tail") {
  DecoderOptions o = small("gemma3");
  CHECK(o.period() == 3);
  CHECK(o.iterations() == 1);
  o.num_layers = 26;
  o.layer_pattern = DecoderOptions("gemma3").layer_pattern;
  CHECK(o.period() == 6);
  CHECK(o.iterations() == 4);
  CHECK(o.layer_place(0).path == "model/layers/0");
  CHECK(o.layer_place(23).path == "model/layers/5");
  CHECK(o.layer_place(23).index == 3);
  CHECK(o.layer_place(25).path == "model/tail/1");
  CHECK(o.layer_place(25).index == 0);
  CHECK_FALSE(o.layer(5).local_rope);
  CHECK(o.layer(5).window == 0);
  CHECK(o.layer(24).local_rope);
  o.num_layers = 5;  // before the first full layer
  CHECK(o.period() == 1);
  CHECK(o.layer_place(4).path == "model/layers");
  CHECK(o.layer_place(4).index == 4);
  o.num_layers = 26;
  o.sliding_window.reset();
  CHECK(o.period() == 1);
  CHECK(small("smollm3").period() == 4);
  CHECK_FALSE(small("smollm3").layer(3).rope);

  const DecoderOptions gemma = small("gemma3");
  DefaultInterpreter use;
  std::set<std::string> places, expected;
  const Decoder model = model_of(gemma, DType::f32);
  for_each_leaf(model, [&](const std::string& path, const Array& a) {
    if (const size_t end = path.find("/mlp/down"); end != std::string::npos)
      places.insert("model/" + path.substr(0, end) + " " + std::to_string(a.shape().axes[0].size));
  });
  for (int64_t i = 0; i < gemma.num_layers; ++i) expected.insert(gemma.layer_place(i).path + " 1");
  CHECK(places == expected);
}

TEST_CASE("first layers without experts lie before the loop, whose period begins behind them") {
  DecoderOptions o = small("deepseek_v2");
  CHECK(o.lead() == 1);
  CHECK(o.period() == 1);
  CHECK(o.iterations() == 4);
  CHECK(o.layer_place(0).path == "model/lead/0");
  CHECK(o.layer_place(1).path == "model/layers");
  CHECK(o.layer_place(1).index == 0);
  CHECK(o.layer_place(4).index == 3);

  o = odd_latent();  // of 7 layers two without experts, then full, sliding, full, sliding, full
  CHECK(o.period() == 2);
  CHECK(o.iterations() == 2);
  CHECK(o.layer_place(1).path == "model/lead/1");
  CHECK(o.layer_place(4).path == "model/layers/0");
  CHECK(o.layer_place(4).index == 1);
  CHECK(o.layer_place(6).path == "model/tail/0");
  CHECK(o.layer(1).dense);
  CHECK(o.layer(1).window == 6);
  CHECK_FALSE(o.layer(2).dense);

  DefaultInterpreter use;
  const Decoder model = model_of(o, DType::f32);
  CHECK(model.block(1).mlp.gate_up.weight.size("dense_mlp") == 28);
  CHECK_FALSE(model.block(1).moe.down.valid());
  CHECK(model.block(6).moe.shared.down.weight.size("shared_mlp") == 20);
  CHECK_FALSE(model.block(6).mlp.gate_up.weight.valid());
}

TEST_CASE("of latent attention scores are scaled by the width of heads, not by that of padded ones") {
  DecoderOptions o = odd_latent();
  const double stretch = 0.1 * 0.8 * std::log(3.0) + 1;
  CHECK(*o.head_dim == 7);
  CHECK(o.cache_dim() == 11);
  CHECK(o.attention_scale() == doctest::Approx(stretch * stretch / std::sqrt(7.0)).epsilon(1e-12));
  o.rope = RopeDefaultOptions{};
  CHECK(o.attention_scale() == doctest::Approx(1 / std::sqrt(7.0)).epsilon(1e-12));
}

TEST_CASE("a family takes its own keys only, and names the others") {
  const auto error = [](const std::string& family, const std::string& yaml) {
    DecoderOptions o(family);
    auto node = config::parse_yaml(yaml, "c.yaml");
    REQUIRE(node.ok());
    if (const Status read = config::table_of(o).read(*node, "model"); !read.ok())
      return read.error().message();
    const Status resolved = o.resolve();
    return resolved.ok() ? std::string() : resolved.error().message();
  };
  CHECK(error("gemma3", "{sliding_window: 7, head_dim: 32}") == "");
  CHECK(error("decoder", "{positions: learned, norm: layer, norm_bias: true, head_bias: true}") == "");
  CHECK(error("llama", "{sliding_window: 7}") ==
        "c.yaml:1: model.sliding_window is refused: the family llama has its own value of it; model.type "
        "decoder "
        "takes any");
  CHECK(error("gpt2", "{rope: {theta: 5}}").find("model.rope is refused: the family gpt2") !=
        std::string::npos);
  CHECK(error("gpt2", "{seq_len: 2000}") ==
        "model.seq_len: 2000 is above model.max_position_embeddings, which is 1024; every position needs a "
        "vector");
  CHECK(error("decoder", "{norm_bias: true}") ==
        "model.norm_bias: true needs model.norm layer; RMSNorm has no bias");
  CHECK(error("decoder", "{attention_multiplier: 2, query_pre_attn_scalar: 3}")
            .find("model.attention_multiplier: 2 and model.query_pre_attn_scalar 3 both scale") == 0);
  CHECK(error("phi3", "{partial_rotary_factor: 0.01}")
            .find("model.partial_rotary_factor: 0.01 of model.head_dim 64 "
                  "are 0 elements") == 0);
  CHECK(error("mistral", "{sliding_window: 0}") == "model.sliding_window: 0 is not positive; use 1 or more");
  CHECK(error("decoder", "{layer_pattern: []}").find("model.layer_pattern: is empty") == 0);
  CHECK(error("decoder", "{layer_pattern: [local]}").find("model.layer_pattern[0]") != std::string::npos);
  CHECK(error("llama", "{rope: {type: yarn, beta_slow: 40}}")
            .find("model.rope.beta_slow: 40 must be above 0 and below beta_fast") == 0);
  CHECK(error("decoder", "{parallel: true, norm_place: post}").find("model.parallel: true with") == 0);
  CHECK(error("decoder", "{num_experts: 4, router_scores: softmax_chosen}") == "");
  CHECK(error("mixtral", "{num_experts: 3, num_experts_per_tok: 4}") ==
        "model.num_experts_per_tok: 4 is above model.num_experts, which is 3");
  CHECK(error("grok", "{num_experts: 0}").find("model.num_experts: 0, but the family grok is a mixture") ==
        0);
  CHECK(error("decoder", "{num_experts: -1}") == "model.num_experts: -1 is not positive; use 1 or more");
  CHECK(error("olmoe", "{router_aux_loss_coef: 0.01}") ==
        "model.router_aux_loss_coef: 0.01 needs model.track_expert_load true");
  CHECK(error("olmoe", "{router_z_loss_coef: -1}") == "model.router_z_loss_coef: -1 is negative");
  CHECK(error("decoder", "{num_experts: 4, gated_mlp: false}").find("model.gated_mlp: false, with") == 0);
  CHECK(error("decoder", "{num_experts: 4, mlp_bias: true}").find("model.mlp_bias: true, with") == 0);
  CHECK(error("deepseek_v2", "{n_group: 3}") ==
        "model.n_group: 3 groups of equal size cannot be made of model.num_experts, which is 16");
  CHECK(
      error("deepseek_v2", "{n_group: 8, topk_group: 1}") ==
      "model.num_experts_per_tok: 4 is above 2, the experts in model.topk_group 1 of model.n_group 8 groups");
  CHECK(error("deepseek_v2", "{topk_group: 2}") == "model.topk_group: 2 is above model.n_group, which is 1");
  CHECK(error("deepseek_v3", "{n_group: 16, topk_group: 8}").find("model.group_score: best_two, but") == 0);
  CHECK(error("deepseek_v2", "{first_k_dense_replace: 4}")
            .find("model.first_k_dense_replace: 4 of model.num_l") == 0);
  CHECK(error("deepseek_v2", "{kv_lora_rank: 0}") ==
        "model.kv_lora_rank: 0, but the family deepseek_v2 has latent attention; use 1 or more, or another "
        "model.type");
  CHECK(error("deepseek_v2", "{qk_rope_head_dim: 5}") ==
        "model.qk_rope_head_dim: 5 is not a positive even number; pairs turn");
  CHECK(error("decoder", "{kv_lora_rank: 8}").find("model.num_kv_heads: 2, but with model.kv_lora_rank") ==
        0);
  CHECK(error("decoder", "{kv_lora_rank: 8, num_kv_heads: 4, head_dim: 64}")
            .find("model.head_dim: 64 is not") == 0);
  CHECK(error("decoder", "{kv_lora_rank: 8, num_kv_heads: 4, qk_norm: head}").find("model.qk_norm: ") == 0);
  CHECK(error("decoder", "{q_lora_rank: 8}") == "model.q_lora_rank: 8 needs model.kv_lora_rank above 0");
  CHECK(error("decoder", "{first_k_dense_replace: 1}") ==
        "model.first_k_dense_replace: 1 needs model.num_experts above 0");
  CHECK(
      error("decoder", "{num_experts: 4, shared_expert_gate: true}").find("model.shared_expert_gate: true") ==
      0);
  CHECK(error("llama", "{qkv_bias: true, out_bias: true, mlp_bias: true}") == "");
  CHECK(error("llama", "{head_dim: 33}").find("model.head_dim: 33 is not a positive even number") == 0);
  CHECK(error("gpt2", "{hidden_dim: 44}") == "");  // heads of 11, of which nothing turns
  CHECK(error("phi3", "{head_dim: 33, partial_rotary_factor: 0.75}") == "");
  CHECK(error("decoder", "{positions: learned, head_dim: 0}").find("model.head_dim: 0 is not positive") == 0);
  CHECK(error("llama", "{num_experts: 4}").find("model.num_experts is refused: the family llama") !=
        std::string::npos);
}

}  // namespace
}  // namespace ostro::models
