// Mixtures of experts: Mixtral, Qwen 2 and 3, OLMoE.
#include <algorithm>
#include <numeric>

#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

// The number of experts has two names; programs read both and write either.
void expert_fields(ConfigFields& f, HfModel& m, const char* key, const char* other_key, int64_t missing,
                   int64_t missing_chosen) {
  models::DecoderOptions& o = m.options;
  const bool other = f.reading() && !f.has(key) && f.has(other_key);
  if (f.reading() && f.has(key) && f.has(other_key)) {
    int64_t a = 0, b = 0;
    f.integer(key, &a);
    f.integer(other_key, &b);
    if (f.status().ok() && a != b)
      f.fail(corrupt(fmt::format("{}: \"{}\" is {}, but \"{}\" is {}; both say how many experts a layer has",
                                 f.where(), key, a, other_key, b)));
  }
  f.integer(other ? other_key : key, &o.num_experts, missing);
  f.integer("num_experts_per_tok", &o.num_experts_per_tok, missing_chosen);
  // A term of the training loss alone; here it would need the parameter moe/load (docs/reference/moe.md).
  f.harmless("router_aux_loss_coef", o.router_aux_loss_coef);
  f.harmless("output_router_logits", false);
}

// Layers without experts, which here are the first ones.
void dense_layer_fields(ConfigFields& f, HfModel& m, int64_t missing) {
  models::DecoderOptions& o = m.options;
  f.integer("intermediate_size", &o.dense_intermediate_dim, missing);
  f.must_be("decoder_sparse_step", 1);
  std::vector<int64_t> dense(static_cast<size_t>(o.lead()));
  std::iota(dense.begin(), dense.end(), 0);
  f.integers("mlp_only_layers", &dense);
  if (!f.reading()) return;
  o.first_k_dense_replace = static_cast<int64_t>(dense.size());
  std::sort(dense.begin(), dense.end());
  for (size_t i = 0; i < dense.size(); ++i)
    if (dense[i] != static_cast<int64_t>(i))
      return f.fail(unsupported(fmt::format(
          "{}: \"mlp_only_layers\" names layer {}, but not all before it; only the first layers can "
          "be without experts",
          f.where(), dense[i])));
}

void mixtral_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 8, .positions = 131072, .epsilon = 1e-5});
  f.rope(&o.rope, 1e6, o.seq_len);
  window_field(f, m, {});
  expert_fields(f, m, "num_local_experts", "num_experts", 8, 2);
  f.harmless("router_jitter_noise", 0.0);  // while training only
  last_fields(f, m);
}

void qwen3_moe_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  f.integer("vocab_size", &m.vocab);
  f.integer("hidden_size", &o.hidden_dim);
  f.integer("moe_intermediate_size", &o.intermediate_dim, 768);
  f.integer("num_hidden_layers", &o.num_layers);
  f.integer("num_attention_heads", &o.num_heads);
  kv_head_field(f, m, 4);
  head_dim_field(f, m);
  attention_bias_field(f, m, false);
  llama_inner_fields(f, m, 32768, 1e-6);
  f.rope(&o.rope, 10000, o.seq_len);
  bool window = o.sliding_window.has_value();
  f.boolean("use_sliding_window", &window, false);
  f.integer("sliding_window", &o.sliding_window, 4096);
  if (!window) o.sliding_window.reset();
  expert_fields(f, m, "num_experts", "num_local_experts", 128, 8);
  f.boolean("norm_topk_prob", &o.norm_topk_prob, false);
  dense_layer_fields(f, m, 6144);
  last_fields(f, m);
}

void qwen2_moe_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  f.integer("vocab_size", &m.vocab);
  f.integer("hidden_size", &o.hidden_dim);
  f.integer("moe_intermediate_size", &o.intermediate_dim, 1408);
  f.integer("shared_expert_intermediate_size", &o.shared_intermediate_dim, 5632);
  f.integer("num_hidden_layers", &o.num_layers);
  f.integer("num_attention_heads", &o.num_heads);
  kv_head_field(f, m, 16);
  head_dim_field(f, m);
  f.boolean("qkv_bias", &o.qkv_bias, true);
  llama_inner_fields(f, m, 32768, 1e-6);
  f.rope(&o.rope, 10000, o.seq_len);
  switched_window_fields(f, m);
  if (f.reading() && o.sliding_window && !f.has("layer_types"))
    f.fail(
        unsupported(fmt::format("{}: \"use_sliding_window\" without \"layer_types\", of which programs make "
                                "different things; say which layers have the window",
                                f.where())));
  expert_fields(f, m, "num_experts", "num_local_experts", 60, 4);
  f.boolean("norm_topk_prob", &o.norm_topk_prob, false);
  dense_layer_fields(f, m, 5632);
  last_fields(f, m);
}

void olmoe_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m);
  derived_head_dim_field(f, m);
  if (!f.reading() && *o.head_dim * o.num_heads != o.hidden_dim)
    f.fail(
        unsupported(fmt::format("model.head_dim {} times model.num_heads {} is not model.hidden_dim {}; an "
                                "olmoe of Hugging Face directories has no other heads",
                                *o.head_dim, o.num_heads, o.hidden_dim)));
  llama_inner_fields(f, m, 4096, 1e-5);
  f.rope(&o.rope, 10000, o.seq_len);
  attention_bias_field(f, m, false);
  f.must_be_null("clip_qkv");
  expert_fields(f, m, "num_experts", "num_local_experts", 64, 8);
  f.boolean("norm_topk_prob", &o.norm_topk_prob, false);
  last_fields(f, m);
}

FamilyNames mixtral_names() {
  FamilyNames names = llama_names();
  names.layer.insert(names.layer.end(), {{"block_sparse_moe.gate", Role::kRouter},
                                         {"block_sparse_moe.experts.*.w1", Role::kExpertGate},
                                         {"block_sparse_moe.experts.*.w3", Role::kExpertUp},
                                         {"block_sparse_moe.experts.*.w2", Role::kExpertDown}});
  return names;
}

FamilyNames qwen2_moe_names() {
  FamilyNames names = mixture_names();
  names.layer.insert(names.layer.end(), {{"mlp.shared_expert.gate_proj", Role::kSharedGate},
                                         {"mlp.shared_expert.up_proj", Role::kSharedUp},
                                         {"mlp.shared_expert.down_proj", Role::kSharedDown},
                                         {"mlp.shared_expert_gate", Role::kSharedWeight}});
  return names;
}

}  // namespace

HfFamily hf_mixtral() {
  return {"mixtral", "mixtral", "MixtralForCausalLM", mixtral_config, mixtral_names()};
}

HfFamily hf_qwen3_moe() {
  return {"qwen3_moe", "qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe_config, mixture_names()};
}

HfFamily hf_qwen2_moe() {
  return {"qwen2_moe", "qwen2_moe", "Qwen2MoeForCausalLM", qwen2_moe_config, qwen2_moe_names()};
}

HfFamily hf_olmoe() { return {"olmoe", "olmoe", "OlmoeForCausalLM", olmoe_config, mixture_names()}; }

}  // namespace ostro::hf
