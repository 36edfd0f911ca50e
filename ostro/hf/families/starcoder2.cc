// StarCoder2: layer norms and biases, an MLP without a gate.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void starcoder2_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m, 2);
  derived_head_dim_field(f, m);
  f.activation("hidden_act", &o.activation_function, models::Activation::kGeluTanh, "gelu_pytorch_tanh");
  length_field(f, m, "max_position_embeddings", 4096);
  f.number("norm_epsilon", &o.layer_norm_epsilon, 1e-5);
  f.rope(&o.rope, 10000, o.seq_len);
  window_field(f, m, {});
  shared_flag(
      f, "use_bias", true,
      {{"model.qkv_bias", &o.qkv_bias}, {"model.out_bias", &o.out_bias}, {"model.mlp_bias", &o.mlp_bias}});
  f.must_say("mlp_type", "default");
  f.must_say("norm_type", "layer_norm");
  f.harmless("attention_dropout", 0.0);
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, true);
  f.number("initializer_range", &o.initializer_range, 0.018042);
}

}  // namespace

HfFamily hf_starcoder2() {
  return {"starcoder2", "starcoder2", "Starcoder2ForCausalLM", starcoder2_config,
          names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                            {"self_attn.q_proj", Role::kQ},
                            {"self_attn.k_proj", Role::kK},
                            {"self_attn.v_proj", Role::kV},
                            {"self_attn.o_proj", Role::kO},
                            {"post_attention_layernorm", Role::kMlpNorm},
                            {"mlp.c_fc", Role::kUp},
                            {"mlp.c_proj", Role::kDown}})};
}

}  // namespace ostro::hf
