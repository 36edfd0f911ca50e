// GLM-4: neighbours in half of each head turn together. That of April 2025 (0414, glm4) also has norms after
// attention and MLP.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void glm4_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 2, .head_dim = 128, .positions = 131072, .epsilon = 1.5625e-7});
  f.rope(&o.rope, 10000, o.seq_len, &o.partial_rotary_factor, 0.5);
  f.boolean("attention_bias", &o.qkv_bias, true);
  last_fields(f, m);
}

}  // namespace

HfFamily hf_glm() {
  return {"glm", "glm", "GlmForCausalLM", glm4_config,
          names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                            {"self_attn.q_proj", Role::kQ},
                            {"self_attn.k_proj", Role::kK},
                            {"self_attn.v_proj", Role::kV},
                            {"self_attn.o_proj", Role::kO},
                            {"post_attention_layernorm", Role::kMlpNorm},
                            {"mlp.gate_up_proj", Role::kGateUp},
                            {"mlp.down_proj", Role::kDown}})};
}

HfFamily hf_glm4() {
  return {"glm4", "glm4", "Glm4ForCausalLM", glm4_config,
          names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                            {"self_attn.q_proj", Role::kQ},
                            {"self_attn.k_proj", Role::kK},
                            {"self_attn.v_proj", Role::kV},
                            {"self_attn.o_proj", Role::kO},
                            {"post_self_attn_layernorm", Role::kAttentionPostNorm},
                            {"post_attention_layernorm", Role::kMlpNorm},
                            {"mlp.gate_up_proj", Role::kGateUp},
                            {"mlp.down_proj", Role::kDown},
                            {"post_mlp_layernorm", Role::kMlpPostNorm}})};
}

}  // namespace ostro::hf
