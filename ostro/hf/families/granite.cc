// Granite 3: a Llama with multipliers.
#include <cmath>

#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void granite_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m);
  derived_head_dim_field(f, m);
  llama_inner_fields(f, m, 2048, 1e-6);
  f.rope(&o.rope, 10000, o.seq_len);
  attention_bias_field(f, m, false);
  f.boolean("mlp_bias", &o.mlp_bias, false);
  f.number("embedding_multiplier", &o.embedding_multiplier, 1.0);
  f.number("residual_multiplier", &o.residual_multiplier, 1.0);
  f.number("logits_scaling", &o.logits_scaling, 1.0);
  double scale =
      o.attention_multiplier.value_or(1.0 / std::sqrt(static_cast<double>(o.head_dim.value_or(1))));
  f.number("attention_multiplier", &scale, 1.0);
  o.attention_multiplier = scale;
  last_fields(f, m);
}

}  // namespace

HfFamily hf_granite() { return {"granite", "granite", "GraniteForCausalLM", granite_config, llama_names()}; }

}  // namespace ostro::hf
