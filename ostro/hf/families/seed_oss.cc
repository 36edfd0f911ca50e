// Seed-OSS: a Llama with biases of q, k and v.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void seed_oss_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 8, .head_dim = 128, .positions = 524288, .epsilon = 1e-6});
  f.rope(&o.rope, 10000, o.seq_len);
  f.boolean("attention_bias", &o.qkv_bias, true);
  f.boolean("attention_out_bias", &o.out_bias, false);
  f.boolean("mlp_bias", &o.mlp_bias, false);
  f.harmless("attention_dropout", 0.0);
  f.harmless("residual_dropout", 0.0);
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, false);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_seed_oss() {
  return {"seed_oss", "seed_oss", "SeedOssForCausalLM", seed_oss_config, llama_names()};
}

}  // namespace ostro::hf
