// Phi-3 and Phi-4: q, k and v are one tensor, gate and up another.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void phi3_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.positions = 4096, .epsilon = 1e-5});
  f.rope(&o.rope, 10000, o.seq_len, &o.partial_rotary_factor);
  if (!std::holds_alternative<models::RopeDefaultOptions>(o.rope) &&
      !std::holds_alternative<models::RopeLongOptions>(o.rope))
    f.fail(unsupported(fmt::format("{}: rope kind \"{}\"; programs of Phi-3 take default and longrope",
                                   f.reading() ? f.where() : "model.rope",
                                   std::visit([](const auto& r) { return r.kType; }, o.rope))));
  window_field(f, m, {});
  f.must("attention_bias", false);
  if (f.reading()) {  // of Phi-4-mini
    f.must("lm_head_bias", false);
    f.must("mlp_bias", false);
    f.must_be("full_attn_mod", 1);
    f.must_be("interpolate_factor", 1);
  }
  last_fields(f, m);
}

}  // namespace

HfFamily hf_phi3() {
  return {"phi3", "phi3", "Phi3ForCausalLM", phi3_config,
          names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                            {"self_attn.qkv_proj", Role::kQkv},
                            {"self_attn.o_proj", Role::kO},
                            {"post_attention_layernorm", Role::kMlpNorm},
                            {"mlp.gate_up_proj", Role::kGateUp},
                            {"mlp.down_proj", Role::kDown}})};
}

}  // namespace ostro::hf
