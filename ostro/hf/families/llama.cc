// Llama 2 and 3.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void llama_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.positions = 2048, .epsilon = 1e-6});
  f.rope(&o.rope, 10000, o.seq_len);
  attention_bias_field(f, m, false);
  f.harmless("attention_dropout", 0.0);
  f.boolean("mlp_bias", &o.mlp_bias, false);
  if (f.reading()) {  // of models that nanotron trained
    f.must("is_llama_config", true);
    f.must("rope_interleaved", false);
  }
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, false);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_llama() { return {"llama", "llama", "LlamaForCausalLM", llama_config, llama_names()}; }

}  // namespace ostro::hf
