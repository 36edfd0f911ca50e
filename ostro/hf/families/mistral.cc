// Mistral: a Llama with a window in every layer.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void mistral_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m, 8);
  head_dim_field(f, m);
  f.activation("hidden_act", &o.activation_function, models::Activation::kSilu);
  length_field(f, m, "max_position_embeddings", 131072);
  f.number("rms_norm_eps", &o.layer_norm_epsilon, 1e-6);
  f.rope(&o.rope, 10000, o.seq_len);
  window_field(f, m, 4096);
  f.harmless("attention_dropout", 0.0);
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, false);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_mistral() { return {"mistral", "mistral", "MistralForCausalLM", mistral_config, llama_names()}; }

}  // namespace ostro::hf
