// DeepSeek-V2 and DeepSeek-V3: latent attention, shared experts, first layers without experts, groups of
// experts. Where programs disagree on what a key means, its usual value is the only one that is known.
#include <algorithm>

#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void size_fields_of_both(ConfigFields& f, HfModel& m, int64_t dense, int64_t of_experts) {
  models::DecoderOptions& o = m.options;
  f.integer("vocab_size", &m.vocab);
  f.integer("hidden_size", &o.hidden_dim);
  f.integer("intermediate_size", &o.dense_intermediate_dim, dense);
  f.integer("moe_intermediate_size", &o.intermediate_dim, of_experts);
  f.integer("num_hidden_layers", &o.num_layers);
  f.integer("num_attention_heads", &o.num_heads);
  int64_t kv_heads = o.num_heads;
  f.integer("num_key_value_heads", &kv_heads, o.num_heads);
  if (kv_heads != o.num_heads)
    f.fail(
        unsupported(fmt::format("{}: \"num_key_value_heads\" is {}, but \"num_attention_heads\" {}; each "
                                "head has keys of its own",
                                f.where(), kv_heads, o.num_heads)));
}

void latent_fields(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  f.integer("kv_lora_rank", &o.kv_lora_rank, 512);
  std::optional<int64_t> q_rank = o.q_lora_rank > 0 ? std::optional(o.q_lora_rank) : std::nullopt;
  f.integer("q_lora_rank", &q_rank, 1536);
  if (f.reading()) o.q_lora_rank = q_rank.value_or(0);
  f.integer("qk_nope_head_dim", &o.qk_nope_head_dim, 128);
  f.integer("qk_rope_head_dim", &o.qk_rope_head_dim, 64);
  f.integer("v_head_dim", &o.v_head_dim, 128);
  derived_field(f, "head_dim", o.qk_rope_head_dim, "\"qk_rope_head_dim\"");
  derived_field(f, "qk_head_dim", o.latent_head_dim(), "\"qk_nope_head_dim\" plus \"qk_rope_head_dim\"");
  attention_bias_field(f, m, false);
}

// The shared experts are one MLP, as wide as all of them together.
void expert_fields_of_both(ConfigFields& f, HfModel& m, int64_t experts, std::optional<int64_t> chosen,
                           int64_t shared_experts, int64_t dense_layers) {
  models::DecoderOptions& o = m.options;
  f.integer("n_routed_experts", &o.num_experts, experts);
  f.integer("num_experts_per_tok", &o.num_experts_per_tok, chosen);
  if (!f.reading() && (o.shared_intermediate_dim == 0 || o.shared_intermediate_dim % o.intermediate_dim != 0))
    f.fail(
        unsupported(fmt::format("model.shared_intermediate_dim {} is no multiple of model.intermediate_dim "
                                "{}; a {} of Hugging Face directories has a number of shared experts",
                                o.shared_intermediate_dim, o.intermediate_dim, o.type())));
  int64_t shared = o.shared_intermediate_dim / std::max<int64_t>(1, o.intermediate_dim);
  f.integer("n_shared_experts", &shared, shared_experts);
  if (f.reading() && shared < 1)
    f.fail(
        unsupported(fmt::format("{}: \"n_shared_experts\" is {}; one or more are known", f.where(), shared)));
  if (f.reading()) o.shared_intermediate_dim = shared * o.intermediate_dim;
  f.integer("first_k_dense_replace", &o.first_k_dense_replace, dense_layers);
  f.must_be("moe_layer_freq", 1);
  f.must_be("ep_size", 1);
}

void last_fields_of_both(ConfigFields& f, HfModel& m, int64_t positions) {
  models::DecoderOptions& o = m.options;
  llama_inner_fields(f, m, positions, 1e-6);
  f.scaled_rope(&o.rope, 10000, o.seq_len);
  last_fields(f, m);
}

void deepseek_v2_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields_of_both(f, m, 11008, 1407);
  latent_fields(f, m);
  expert_fields_of_both(f, m, 64, {}, 2, 0);
  f.number("routed_scaling_factor", &o.routed_scaling_factor, 1.0);
  // transformers knows no norm_topk_prob; the first implementation then leaves routed_scaling_factor out.
  f.must("norm_topk_prob", false);
  f.word("scoring_func", "softmax", {"softmax"});
  const std::string method = f.word("topk_method", o.n_group > 1 ? "group_limited_greedy" : "greedy",
                                    {"greedy", "group_limited_greedy"});
  f.integer("n_group", &o.n_group, 1);
  f.integer("topk_group", &o.topk_group, 1);
  if (f.reading() && method == "greedy") o.n_group = o.topk_group = 1;
  f.must("mlp_bias", false);
  last_fields_of_both(f, m, 2048);
}

void deepseek_v3_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields_of_both(f, m, 18432, 2048);
  latent_fields(f, m);
  expert_fields_of_both(f, m, 256, 8, 1, 3);
  f.number("routed_scaling_factor", &o.routed_scaling_factor, 2.5);
  f.boolean("norm_topk_prob", &o.norm_topk_prob, true);
  f.word("scoring_func", "sigmoid", {"sigmoid"});
  f.word("topk_method", "noaux_tc", {"noaux_tc"});
  f.integer("n_group", &o.n_group, 8);
  f.integer("topk_group", &o.topk_group, 4);
  f.boolean("rope_interleave", &o.rope_interleaved, true);
  last_fields_of_both(f, m, 4096);
}

FamilyNames deepseek_names() {
  return names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                           {"self_attn.q_proj", Role::kQ},
                           {"self_attn.q_a_proj", Role::kQA},
                           {"self_attn.q_a_layernorm", Role::kQANorm},
                           {"self_attn.q_b_proj", Role::kQB},
                           {"self_attn.kv_a_proj_with_mqa", Role::kKvA},
                           {"self_attn.kv_a_layernorm", Role::kKvANorm},
                           {"self_attn.kv_b_proj", Role::kKvB},
                           {"self_attn.o_proj", Role::kO},
                           {"post_attention_layernorm", Role::kMlpNorm},
                           {"mlp.gate_proj", Role::kGate},
                           {"mlp.up_proj", Role::kUpOfGate},
                           {"mlp.down_proj", Role::kDown},
                           {"mlp.gate", Role::kRouter},
                           {"mlp.experts.*.gate_proj", Role::kExpertGate},
                           {"mlp.experts.*.up_proj", Role::kExpertUp},
                           {"mlp.experts.*.down_proj", Role::kExpertDown},
                           {"mlp.shared_experts.gate_proj", Role::kSharedGate},
                           {"mlp.shared_experts.up_proj", Role::kSharedUp},
                           {"mlp.shared_experts.down_proj", Role::kSharedDown}});
}

FamilyNames deepseek_v3_names() {
  FamilyNames names = deepseek_names();
  names.layer.push_back({"mlp.gate.e_score_correction_bias", Role::kRouterBias});
  names.buffers.push_back(
      "model.layers.61.*");  // the release's layer for further tokens; a weight if it is used
  return names;
}

}  // namespace

HfFamily hf_deepseek_v2() {
  return {"deepseek_v2", "deepseek_v2", "DeepseekV2ForCausalLM", deepseek_v2_config, deepseek_names()};
}

HfFamily hf_deepseek_v3() {
  return {"deepseek_v3", "deepseek_v3", "DeepseekV3ForCausalLM", deepseek_v3_config, deepseek_v3_names()};
}

}  // namespace ostro::hf
