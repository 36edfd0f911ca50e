// Qwen 2 (biases of q, k and v) and Qwen 3 (norms of q and k).
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void qwen_shared_fields(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_inner_fields(f, m, 32768, 1e-6);
  f.rope(&o.rope, 10000, o.seq_len);
  switched_window_fields(f, m);
  last_fields(f, m);
}

void qwen2_config(ConfigFields& f, HfModel& m) {
  size_fields(f, m);
  kv_head_field(f, m, 32);
  head_dim_field(f, m);
  if (f.reading()) f.must("use_mrope", false);
  qwen_shared_fields(f, m);
}

void qwen3_config(ConfigFields& f, HfModel& m) {
  size_fields(f, m);
  kv_head_field(f, m, 32);
  head_dim_field(f, m, 128);
  attention_bias_field(f, m, false);
  qwen_shared_fields(f, m);
}

}  // namespace

HfFamily hf_qwen2() {
  return {"qwen2", "qwen2", "Qwen2ForCausalLM", qwen2_config, llama_names(), "Qwen2Tokenizer"};
}

HfFamily hf_qwen3() { return {"qwen3", "qwen3", "Qwen3ForCausalLM", qwen3_config, llama_names()}; }

}  // namespace ostro::hf
