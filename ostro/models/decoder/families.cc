// families: the values that all models of a family have in common, and the keys that they may set.
#include "ostro/models/decoder/families.h"

#include <algorithm>
#include <iterator>

#include "ostro/models/decoder/decoder_options.h"

namespace ostro::models {
namespace {

using Keys = std::vector<std::string_view>;
constexpr LayerKind kFull = LayerKind::kFull, kSliding = LayerKind::kSliding;

// Keys of grouped heads with rotary positions, and more.
Keys grouped(const Keys& more = {}) {
  Keys all = {"num_kv_heads", "head_dim", "rope"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void llama(DecoderOptions&) {}

void mistral(DecoderOptions& o) { o.layer_pattern = {kSliding}; }

void qwen2(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.rope = RopeDefaultOptions{1e6};
  o.qkv_bias = true;
}

void qwen3(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.rope = RopeDefaultOptions{1e6};
  o.qk_norm = QkNorm::kHead;
}

void gemma(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.activation_function = Activation::kGeluTanh;
  o.tie_word_embeddings = true;
  o.norm_place = NormPlace::kSandwich;
  o.norm_scale = NormScale::kOnePlusWeight;
  o.scale_embedding = true;
}

void gemma1(DecoderOptions& o) {
  gemma(o);
  o.norm_place = NormPlace::kPre;
}

void gemma2(DecoderOptions& o) {
  gemma(o);
  o.sliding_window = 4096;
  o.layer_pattern = {kSliding, kFull};
  o.attn_logit_softcapping = 50;
  o.final_logit_softcapping = 30;
}

void gemma3(DecoderOptions& o) {
  gemma(o);
  o.qk_norm = QkNorm::kHead;
  o.sliding_window = 1024;
  o.layer_pattern = {kSliding, kSliding, kSliding, kSliding, kSliding, kFull};
  o.rope = RopeDefaultOptions{1e6};
  o.rope_local_theta = 10000;
}

void olmo2(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.rope = RopeDefaultOptions{500000};
  o.norm_place = NormPlace::kPost;
  o.qk_norm = QkNorm::kWhole;
}

void olmo3(DecoderOptions& o) {
  olmo2(o);
  o.sliding_window = 4096;
  o.layer_pattern = {kSliding, kSliding, kSliding, kFull};
  o.rope_local_theta = 500000;
}

void phi3(DecoderOptions& o) { o.layer_pattern = {kSliding}; }

// Layer norms and biases everywhere, an MLP without a gate.
void biased(DecoderOptions& o) {
  o.norm = NormKind::kLayer;
  o.norm_bias = o.qkv_bias = o.out_bias = o.mlp_bias = true;
  o.gated_mlp = false;
  o.intermediate_dim = 1024;
}

void gpt2(DecoderOptions& o) {
  biased(o);
  o.activation_function = Activation::kGeluTanh;
  o.tie_word_embeddings = true;
  o.positions = Positions::kLearned;
}

void gpt_neox(DecoderOptions& o) {
  biased(o);
  o.activation_function = Activation::kGelu;
  o.parallel = true;
  o.partial_rotary_factor = 0.25;
}

void starcoder2(DecoderOptions& o) {
  biased(o);
  o.activation_function = Activation::kGeluTanh;
  o.tie_word_embeddings = true;
  o.layer_pattern = {kSliding};
}

void granite(DecoderOptions& o) { o.tie_word_embeddings = true; }

void smollm3(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.tie_word_embeddings = true;
  o.rope = RopeDefaultOptions{2e6};
  o.rope_pattern = {LayerRope::kRope, LayerRope::kRope, LayerRope::kRope, LayerRope::kNone};
}

void helium(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-8;
  o.rope_interleaved = true;
}

void glm4(DecoderOptions& o) {
  o.layer_norm_epsilon = 1.5625e-7;
  o.norm_place = NormPlace::kSandwich;
  o.rope_interleaved = true;
  o.partial_rotary_factor = 0.5;
  o.qkv_bias = true;
}

void glm(DecoderOptions& o) {
  glm4(o);
  o.norm_place = NormPlace::kPre;
}

void seed_oss(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.qkv_bias = true;
}

void ernie4_5(DecoderOptions& o) {
  o.rope = RopeDefaultOptions{500000};
  o.rope_interleaved = true;
  o.tie_word_embeddings = true;
}

void stablelm(DecoderOptions& o) {
  o.norm = NormKind::kLayer;
  o.norm_bias = true;
  o.partial_rotary_factor = 0.25;
}

void mixtral(DecoderOptions& o) {
  o.rope = RopeDefaultOptions{1e6};
  o.layer_pattern = {kSliding};
  o.num_experts = 8;
  o.norm_topk_prob = true;
}

void qwen3_moe(DecoderOptions& o) {
  qwen3(o);
  o.layer_pattern = {kSliding};
  o.intermediate_dim = 256;
  o.num_experts = 16;
  o.num_experts_per_tok = 4;
  o.norm_topk_prob = true;
}

void olmoe(DecoderOptions& o) {
  o.qk_norm = QkNorm::kWhole;
  o.intermediate_dim = 256;
  o.num_experts = 16;
  o.num_experts_per_tok = 4;
}

void qwen2_moe(DecoderOptions& o) {
  qwen2(o);
  o.intermediate_dim = 176;
  o.num_experts = 16;
  o.num_experts_per_tok = 4;
  o.shared_intermediate_dim = 688;
  o.shared_expert_gate = true;
}

void deepseek_v2(DecoderOptions& o) {
  o.layer_norm_epsilon = 1e-6;
  o.rope_interleaved = true;
  o.kv_lora_rank = 64;
  o.intermediate_dim = 176;
  o.num_experts = 16;
  o.num_experts_per_tok = 4;
  o.shared_intermediate_dim = 352;
  o.first_k_dense_replace = 1;
}

void deepseek_v3(DecoderOptions& o) {
  deepseek_v2(o);
  o.q_lora_rank = 96;
  o.shared_intermediate_dim = 176;
  o.router_scores = RouterScores::kSigmoid;
  o.router_bias = true;
  o.norm_topk_prob = true;
  o.routed_scaling_factor = 2.5;
  o.n_group = 4;
  o.topk_group = 2;
  o.group_score = GroupScore::kBestTwo;
}

// The multipliers of the release are those of its sizes: sqrt(6144), 1 / sqrt(128) and 1 / sqrt(3).
void grok(DecoderOptions& o) {
  o.activation_function = Activation::kGeluTanh;
  o.tie_word_embeddings = true;
  o.norm_place = NormPlace::kSandwich;
  o.attn_logit_softcapping = 30;
  o.scale_embedding = true;
  o.logits_scaling = 1.7320508075688772;
  o.num_experts = 8;
}

// Of families whose published files name biases that most of their models do not have.
const Keys kAttentionBiases = {"qkv_bias", "out_bias"};
const Keys kAllBiases = {"qkv_bias", "out_bias", "mlp_bias"};

const Keys kExperts = {"num_experts",       "num_experts_per_tok",  "router_z_loss_coef",
                       "track_expert_load", "router_aux_loss_coef", "router_bias_update_rate"};

Keys with(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// Keys of every mixture of experts, and more.
Keys mixture(const Keys& more) { return with(grouped(kExperts), more); }

// Keys of a mixture with latent attention, shared experts and groups, and more.
Keys deepseek(const Keys& more) {
  const Keys all =
      with(kExperts, {"rope", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                      "v_head_dim", "qkv_bias", "out_bias", "n_group", "topk_group", "routed_scaling_factor",
                      "shared_intermediate_dim", "first_k_dense_replace", "dense_intermediate_dim"});
  return with(all, more);
}

// Keys that models of every family may set.
constexpr std::string_view kCommon[] = {"seq_len",
                                        "hidden_dim",
                                        "intermediate_dim",
                                        "num_layers",
                                        "num_heads",
                                        "activation_function",
                                        "layer_norm_epsilon",
                                        "tie_word_embeddings",
                                        "gradient_checkpointing",
                                        "initializer_range",
                                        "mup_base_dim",
                                        "vocab_size",
                                        "z_loss_weight"};

std::vector<Family> make_families() {
  return {
      {"llama", "Llama 2, Llama 3", llama, grouped(), kAllBiases},
      {"decoder", "any decoder", llama, {"*"}},
      {"mistral", "Mistral", mistral, grouped({"sliding_window"})},
      {"qwen2", "Qwen 2, Qwen 2.5", qwen2, grouped({"sliding_window", "layer_pattern"})},
      {"qwen3", "Qwen 3", qwen3, grouped({"sliding_window", "layer_pattern", "qkv_bias", "out_bias"})},
      {"gemma2", "Gemma 2", gemma2,
       grouped({"sliding_window", "layer_pattern", "query_pre_attn_scalar", "attn_logit_softcapping",
                "final_logit_softcapping"}),
       kAttentionBiases},
      {"gemma3", "Gemma 3 (text)", gemma3,
       grouped({"sliding_window", "layer_pattern", "query_pre_attn_scalar", "rope_local_theta",
                "attn_logit_softcapping", "final_logit_softcapping"}),
       kAttentionBiases},
      {"olmo2", "OLMo 2", olmo2, grouped(), kAttentionBiases},
      {"olmo3", "OLMo 3", olmo3, grouped({"sliding_window", "layer_pattern", "rope_local_theta"}),
       kAttentionBiases},
      {"phi3", "Phi-3, Phi-4", phi3, grouped({"sliding_window", "partial_rotary_factor"})},
      {"gpt2", "GPT-2", gpt2, {"max_position_embeddings"}},
      {"gpt_neox",
       "GPT-NeoX, Pythia",
       gpt_neox,
       {"rope", "partial_rotary_factor", "parallel", "qkv_bias", "out_bias"}},
      {"starcoder2",
       "StarCoder2",
       starcoder2,
       {"num_kv_heads", "rope", "sliding_window", "qkv_bias", "out_bias", "mlp_bias"}},
      {"granite",
       "Granite 3",
       granite,
       {"num_kv_heads", "rope", "qkv_bias", "out_bias", "mlp_bias", "embedding_multiplier",
        "attention_multiplier", "residual_multiplier", "logits_scaling"}},
      {"smollm3", "SmolLM3", smollm3, grouped({"sliding_window", "layer_pattern", "rope_pattern"}),
       kAllBiases},
      {"helium", "Helium", helium, grouped({"qkv_bias", "mlp_bias"})},
      {"glm4", "GLM-4", glm4, grouped({"partial_rotary_factor", "qkv_bias"})},
      {"gemma", "Gemma 1", gemma1, grouped({"qkv_bias", "out_bias"})},
      {"glm", "GLM-4 (first release), GLM-Edge", glm, grouped({"partial_rotary_factor", "qkv_bias"})},
      {"seed_oss", "Seed-OSS", seed_oss, grouped(kAllBiases)},
      {"ernie4_5", "ERNIE 4.5 (dense)", ernie4_5, grouped(kAllBiases)},
      {"stablelm", "StableLM 2", stablelm, {"num_kv_heads", "rope", "partial_rotary_factor", "qkv_bias"}},
      {"mixtral", "Mixtral", mixtral, mixture({"sliding_window"})},
      {"qwen3_moe", "Qwen 3 (mixtures of experts)", qwen3_moe,
       mixture({"sliding_window", "qkv_bias", "out_bias", "norm_topk_prob", "first_k_dense_replace",
                "dense_intermediate_dim"})},
      {"olmoe", "OLMoE", olmoe, mixture({"norm_topk_prob"}), kAttentionBiases},
      {"qwen2_moe", "Qwen 2 (mixtures of experts)", qwen2_moe,
       mixture({"sliding_window", "layer_pattern", "qkv_bias", "norm_topk_prob", "shared_intermediate_dim",
                "first_k_dense_replace", "dense_intermediate_dim"})},
      {"deepseek_v2", "DeepSeek-V2", deepseek_v2, deepseek({})},
      {"deepseek_v3", "DeepSeek-V3", deepseek_v3, deepseek({"norm_topk_prob", "rope_interleaved"})},
      {"grok", "Grok-1", grok,
       mixture({"attn_logit_softcapping", "attention_multiplier", "scale_embedding", "embedding_multiplier",
                "logits_scaling", "norm_topk_prob"})},
  };
}

}  // namespace

bool Family::shows(std::string_view key) const {
  const auto has = [](const auto& list, std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
  };
  return has(kCommon, key) || has(keys, key) || has(later_keys, key) || has(keys, "*");
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = make_families();
  return all;
}

const Family* find_family(std::string_view name) {
  const auto& all = families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Family& family_of(std::string_view name) {
  const Family* family = find_family(name);
  OSTRO_CHECK(family != nullptr, "no family of decoders is called {}", name);
  return *family;
}

}  // namespace ostro::models
