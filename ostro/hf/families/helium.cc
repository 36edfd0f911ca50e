// Helium: a Llama whose neighbours turn together.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void helium_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 20, .head_dim = 128, .positions = 4096, .epsilon = 1e-8});
  f.rope(&o.rope, 100000, o.seq_len);
  f.boolean("attention_bias", &o.qkv_bias, false);
  f.boolean("mlp_bias", &o.mlp_bias, false);
  last_fields(f, m);
}

}  // namespace

HfFamily hf_helium() { return {"helium", "helium", "HeliumForCausalLM", helium_config, llama_names()}; }

}  // namespace ostro::hf
