// Helium: a Llama whose neighbours turn together.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void helium_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m, 20);
  head_dim_field(f, m, 128);
  f.activation("hidden_act", &o.activation_function, models::Activation::kSilu);
  length_field(f, m, "max_position_embeddings", 4096);
  f.number("rms_norm_eps", &o.layer_norm_epsilon, 1e-8);
  f.rope(&o.rope, 100000, o.seq_len);
  f.boolean("attention_bias", &o.qkv_bias, false);
  f.boolean("mlp_bias", &o.mlp_bias, false);
  f.harmless("attention_dropout", 0.0);
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, false);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_helium() { return {"helium", "helium", "HeliumForCausalLM", helium_config, llama_names()}; }

}  // namespace ostro::hf
