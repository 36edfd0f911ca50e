// Mistral: a Llama with a window in every layer.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void mistral_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 8, .positions = 131072, .epsilon = 1e-6});
  f.rope(&o.rope, 10000, o.seq_len);
  window_field(f, m, 4096);
  last_fields(f, m);
}

}  // namespace

HfFamily hf_mistral() { return {"mistral", "mistral", "MistralForCausalLM", mistral_config, llama_names()}; }

}  // namespace ostro::hf
