// small, odd_decoder, ...: small decoders of every family, and token rows, for tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ostro/base/test_size.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::models::test {

using namespace ostro::test;

inline constexpr int64_t kVocab = 19;

// Returns a family at a size at which a test is quick: every feature that it has shows within 20 positions.
inline DecoderOptions small(const std::string& family) {
  DecoderOptions o(family);
  o.seq_len = 40;
  o.hidden_dim = 16;
  o.intermediate_dim = 24;
  o.num_layers = 5;
  o.num_heads = 4;
  o.num_kv_heads = 2;
  if (o.family->shows("head_dim")) o.head_dim = 8;
  o.max_position_embeddings = 48;
  if (o.family->shows("partial_rotary_factor") && family != "decoder") o.partial_rotary_factor = 0.5;
  o.initializer_range = 0.3;  // so that attention is far from uniform
  if (o.sliding_window || o.layer_pattern.front() == LayerKind::kSliding) o.sliding_window = 5;
  if (o.layer_pattern.size() == 6)  // Gemma 3: a period of three and two layers behind it
    o.layer_pattern = {LayerKind::kSliding, LayerKind::kSliding, LayerKind::kFull};
  if (o.attn_logit_softcapping) o.attn_logit_softcapping = 3;
  if (o.final_logit_softcapping) o.final_logit_softcapping = 2;
  if (family == "gemma2") o.query_pre_attn_scalar = 20;
  if (family == "gpt2") o.hidden_dim = 20;  // heads of five elements, of which none is rotated
  if (family == "granite") {
    o.embedding_multiplier = 6;
    o.attention_multiplier = 0.2;
    o.residual_multiplier = 0.4;
    o.logits_scaling = 3;
  }
  if (o.num_experts > 0) o.num_experts = 5;
  if (o.n_group > 1) o.num_experts = 8, o.num_experts_per_tok = 3;
  if (o.shared_intermediate_dim > 0) o.shared_intermediate_dim = 20;
  if (o.router_bias) o.track_expert_load = true;  // so that its derivative, the counts, is not zero
  o.dense_intermediate_dim = 28;
  if (o.kv_lora_rank > 0)
    o.kv_lora_rank = 10, o.qk_nope_head_dim = 6, o.qk_rope_head_dim = 4, o.v_head_dim = 8;
  if (o.q_lora_rank > 0) o.q_lora_rank = 12;
  check_ok(o.resolve());
  return o;
}

// A mixture with values that no family has.
inline DecoderOptions odd_mixture() {
  DecoderOptions o = small("decoder");
  o.parallel = true;
  o.layer_pattern = {LayerKind::kFull, LayerKind::kSliding};
  o.sliding_window = 6;
  o.num_experts = 6;
  o.num_experts_per_tok = 3;
  o.router_scores = RouterScores::kSigmoid;
  o.norm_topk_prob = true;
  o.routed_scaling_factor = 1.5;
  o.track_expert_load = true;
  o.router_aux_loss_coef = 0.1;
  o.router_bias_update_rate = 0.01;
  o.router_z_loss_coef = 0.01;
  check_ok(o.resolve());
  return o;
}

// Latent attention with values that no family has: values wider than keys, in a mixture of unlike layers.
inline DecoderOptions odd_latent() {
  DecoderOptions o = small("decoder");
  o.num_kv_heads = 4;
  o.head_dim.reset();
  o.kv_lora_rank = 12, o.q_lora_rank = 9, o.qk_nope_head_dim = 3, o.qk_rope_head_dim = 4, o.v_head_dim = 11;
  o.rope = RopeYarnOptions{.theta = 100, .factor = 3, .original_max_position_embeddings = 64};
  std::get<RopeYarnOptions>(o.rope).mscale_all_dim = 0.8;
  o.attention_sink = o.qkv_bias = o.out_bias = true;
  o.layer_pattern = {LayerKind::kFull, LayerKind::kSliding};
  o.sliding_window = 6;
  o.num_layers = 7;
  o.first_k_dense_replace = 2;
  o.num_experts = 6, o.num_experts_per_tok = 3, o.n_group = 3, o.topk_group = 2;
  o.group_score = GroupScore::kBestTwo;
  o.shared_intermediate_dim = 20;
  o.shared_expert_gate = true;
  check_ok(o.resolve());
  return o;
}

// Values that no family has: stretched and interleaved positions, sinks, a norm over whole heads with biases.
inline DecoderOptions odd_decoder() {
  DecoderOptions o = small("decoder");
  o.norm = NormKind::kLayer;
  o.norm_bias = true;
  o.norm_place = NormPlace::kSandwich;
  o.norm_scale = NormScale::kOnePlusWeight;
  o.parallel = true;
  o.qk_norm = QkNorm::kWhole;
  o.attention_sink = true;
  o.sliding_window = 6;
  o.layer_pattern = {LayerKind::kFull, LayerKind::kSliding};
  o.rope = RopeYarnOptions{.theta = 100, .factor = 3, .original_max_position_embeddings = 64};
  o.rope_local_theta = 50;
  o.rope_interleaved = true;
  o.partial_rotary_factor = 0.75;
  o.activation_function = Activation::kRelu;
  o.head_bias = true;
  check_ok(o.resolve());
  return o;
}

inline std::vector<DecoderOptions> small_decoders() {
  std::vector<DecoderOptions> all;
  for (const Family& family : families()) all.push_back(small(std::string(family.name)));
  all[1] = odd_decoder();  // `decoder`, which is a Llama by default
  all.push_back(odd_mixture());
  all.push_back(odd_latent());
  return all;
}

// `count` of them, drawn by the test's seed; odd_decoder() is always among them.
inline std::vector<DecoderOptions> sampled_decoders(size_t count) {
  const std::vector<DecoderOptions> all = small_decoders();
  if (count >= all.size()) return all;
  std::vector<DecoderOptions> drawn = {all[1]};
  for (size_t i = 0; i + 1 < count; ++i)
    drawn.push_back(all[2 + (test_seed() * 3 + i * 5) % (all.size() - 2)]);
  return drawn;
}

inline std::vector<runtime::Engine*> engines() {
  static const auto compiled = cpu::make_cpu_engine().value();
  return {&interpreter(), compiled.get()};
}

// Random parameters, also where a model begins with 0 or 1 (norms, biases, sinks): the results that a test
// compares must depend on them.
inline Decoder model_of(const DecoderOptions& o, const nn::Precision& compute, uint64_t seed = 0) {
  DefaultInterpreter use;
  const auto init = jit([o](const Array& key) {
    const Decoder m = Decoder::init(o, kVocab, key);
    return tree_map(m, [&](const std::string& path, const Array& a) {
      if (path.find("norm") == std::string::npos && path.find("bias") == std::string::npos) return a;
      return a + random_normal(fold_in(key, path), a.shape().axes) * 0.3;
    });
  });
  return nn::compute(init(make_key(seed)), compute);
}

// Row b of a token array: a fixed sequence of its own.
inline std::vector<int32_t> row(int64_t b, int64_t n) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<int32_t>((i * i + 5 * i * (b + 1) + 3 * b) % kVocab));
  return out;
}

inline Array ids(const std::vector<std::vector<int32_t>>& rows) {
  std::vector<int32_t> flat;
  for (const auto& r : rows) flat.insert(flat.end(), r.begin(), r.end());
  return i32({{"batch", static_cast<int64_t>(rows.size())}, {"pos", static_cast<int64_t>(rows[0].size())}},
             flat);
}

// The logits of one text, by the forward pass of the whole.
inline std::vector<float> forward_logits(const Decoder& model, const std::vector<int32_t>& tokens) {
  DefaultInterpreter use;
  const auto forward = jit([](const Decoder& m, const Array& t) { return m.logits(t); });
  return values<float>(forward(model, ids({tokens})));
}

// Elements of one batch row, positions [from, to).
inline std::vector<float> part(const Array& logits, int64_t batch, int64_t from, int64_t to) {
  const int64_t n = logits.size("pos");
  const auto all = logits.buffer().as<float>();
  return {all.begin() + (batch * n + from) * kVocab, all.begin() + (batch * n + to) * kVocab};
}

inline bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0 &&
         std::all_of(a.begin(), a.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace ostro::models::test
