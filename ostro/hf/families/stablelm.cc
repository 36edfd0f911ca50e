// StableLM 2: layer norms with biases, a quarter of each head turns.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void stablelm_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m, 32);
  f.activation("hidden_act", &o.activation_function, models::Activation::kSilu);
  length_field(f, m, "max_position_embeddings", 4096);
  f.number("layer_norm_eps", &o.layer_norm_epsilon, 1e-5);
  f.rope(&o.rope, 10000, o.seq_len, &o.partial_rotary_factor, 0.25);
  f.boolean("use_qkv_bias", &o.qkv_bias, false);
  f.must("qk_layernorm", false);
  f.must("use_parallel_residual", false);  // attention and MLP of a parallel layer share one norm
  f.harmless("attention_dropout", 0.0);
  f.harmless("hidden_dropout", 0.0);
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, false);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_stablelm() {
  return {"stablelm", "stablelm", "StableLmForCausalLM", stablelm_config, llama_names()};
}

}  // namespace ostro::hf
