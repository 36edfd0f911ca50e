// OLMo 2 and 3: norms after attention and MLP, and over all heads of q, of k.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void olmo_last_fields(ConfigFields& f, HfModel& m) {
  attention_bias_field(f, m, false);
  last_fields(f, m);
}

void olmo2_config(ConfigFields& f, HfModel& m) {
  llama_first_fields(f, m, {.positions = 2048, .epsilon = 1e-5});
  f.rope(&m.options.rope, 10000, m.options.seq_len);
  olmo_last_fields(f, m);
}

void olmo3_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.positions = 2048, .epsilon = 1e-5});
  f.ropes_by_layer(&o.rope, &o.rope_local_theta, 500000, 500000, o.seq_len);
  if (f.reading() && f.has("rope_theta") && o.rope_local_theta != models::rope_theta(o.rope))
    f.fail(unsupported(
        fmt::format("{}: \"rope_theta\" is {}: programs differ in whether layers with a window have it, "
                    "too; say it by kind of layer in \"rope_parameters\"",
                    f.where(), models::rope_theta(o.rope))));
  window_field(f, m, 4096);
  layer_type_field(f, m, [](int64_t layer) { return (layer + 1) % 4 != 0; });
  olmo_last_fields(f, m);
}

FamilyNames olmo_names() {
  return names_with_layer({{"self_attn.q_proj", Role::kQ},
                           {"self_attn.k_proj", Role::kK},
                           {"self_attn.v_proj", Role::kV},
                           {"self_attn.q_norm", Role::kQNorm},
                           {"self_attn.k_norm", Role::kKNorm},
                           {"self_attn.o_proj", Role::kO},
                           {"post_attention_layernorm", Role::kAttentionPostNorm},
                           {"mlp.gate_proj", Role::kGate},
                           {"mlp.up_proj", Role::kUpOfGate},
                           {"mlp.down_proj", Role::kDown},
                           {"post_feedforward_layernorm", Role::kMlpPostNorm}});
}

}  // namespace

HfFamily hf_olmo2() { return {"olmo2", "olmo2", "Olmo2ForCausalLM", olmo2_config, olmo_names()}; }

HfFamily hf_olmo3() { return {"olmo3", "olmo3", "Olmo3ForCausalLM", olmo3_config, olmo_names()}; }

}  // namespace ostro::hf
