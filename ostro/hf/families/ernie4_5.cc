// ERNIE 4.5 (dense): a Llama whose neighbours turn together.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void ernie4_5_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 2, .head_dim = 128, .positions = 131072, .epsilon = 1e-5});
  f.rope(&o.rope, 500000, o.seq_len);
  shared_flag(
      f, "use_bias", false,
      {{"model.qkv_bias", &o.qkv_bias}, {"model.out_bias", &o.out_bias}, {"model.mlp_bias", &o.mlp_bias}});
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, true);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_ernie4_5() {
  return {"ernie4_5", "ernie4_5", "Ernie4_5ForCausalLM", ernie4_5_config, llama_names()};
}

}  // namespace ostro::hf
