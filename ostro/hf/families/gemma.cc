// Gemma: norms by 1 + weight, of Gemma 2 and 3 (text) before and after attention and MLP.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

// `vocab` and `heads`: as size_fields() has them.
void gemma_first_fields(ConfigFields& f, HfModel& m, int64_t length, std::optional<int64_t> vocab = {},
                        std::optional<int64_t> heads = {}) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m, vocab, heads);
  kv_head_field(f, m, 4);
  head_dim_field(f, m, 256);
  f.activation("hidden_activation", &o.activation_function, models::Activation::kGeluTanh,
               "gelu_pytorch_tanh");
  length_field(f, m, "max_position_embeddings", length);
  f.number("rms_norm_eps", &o.layer_norm_epsilon, 1e-6);
}

void gemma_last_fields(ConfigFields& f, HfModel& m, std::optional<double> score_cap,
                       std::optional<double> logit_cap) {
  models::DecoderOptions& o = m.options;
  std::optional<double> scalar = o.query_pre_attn_scalar;
  if (!scalar && o.head_dim) scalar = static_cast<double>(*o.head_dim);
  f.number("query_pre_attn_scalar", &scalar, 256, /*whole=*/true);
  o.query_pre_attn_scalar = scalar;
  f.number("attn_logit_softcapping", &o.attn_logit_softcapping, score_cap);
  f.number("final_logit_softcapping", &o.final_logit_softcapping, logit_cap);
  attention_bias_field(f, m, false);
  f.must("use_bidirectional_attention", false);
  last_fields(f, m, /*tied=*/true);
}

void gemma2_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  gemma_first_fields(f, m, 8192);
  f.rope(&o.rope, 10000, o.seq_len);
  window_field(f, m, 4096);
  if (f.reading() && o.sliding_window) f.must_be("sliding_window_size", *o.sliding_window);  // an older name
  layer_type_field(f, m, [](int64_t layer) { return layer % 2 == 0; });
  gemma_last_fields(f, m, 50, 30);
}

void gemma3_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  gemma_first_fields(f, m, 131072, /*vocab=*/262208, /*heads=*/8);
  f.ropes_by_layer(&o.rope, &o.rope_local_theta, 1e6, 1e4, o.seq_len);
  window_field(f, m, 4096);
  int64_t pattern = 6;
  if (f.reading()) f.integer("sliding_window_pattern", &pattern, 6);
  if (pattern != 6 && !f.has("layer_types"))
    return f.fail(
        unsupported(fmt::format("{}: \"sliding_window_pattern\" is {} and there are no "
                                "\"layer_types\"; write them, a word for each layer",
                                f.where(), pattern)));
  layer_type_field(f, m, [](int64_t layer) { return (layer + 1) % 6 != 0; });
  gemma_last_fields(f, m, {}, {});
}

// The first files say "gelu" and mean its tanh form, which is all that programs compute.
void gemma1_activation(ConfigFields& f, models::DecoderOptions& o) {
  using models::Activation;
  if (!f.reading() && o.activation_function == Activation::kGelu)
    f.fail(
        unsupported("model.activation_function is gelu, of which programs make its tanh form in a Gemma 1; "
                    "another model.type has both"));
  f.activation("hidden_act", &o.activation_function, Activation::kGeluTanh, "gelu_pytorch_tanh");
  if (!f.reading()) return;
  if (o.activation_function == Activation::kGelu) o.activation_function = Activation::kGeluTanh;
  Activation other = o.activation_function;
  f.activation("hidden_activation", &other, o.activation_function);
  if (other != o.activation_function)
    f.fail(
        unsupported(fmt::format("{}: \"hidden_act\" and \"hidden_activation\" differ; programs read the one "
                                "or the other",
                                f.where())));
}

void gemma1_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  kv_head_field(f, m, 16);
  head_dim_field(f, m, 256);
  gemma1_activation(f, o);
  length_field(f, m, "max_position_embeddings", 8192);
  f.number("rms_norm_eps", &o.layer_norm_epsilon, 1e-6);
  f.rope(&o.rope, 10000, o.seq_len);
  attention_bias_field(f, m, false);
  f.must("use_bidirectional_attention", false);
  last_fields(f, m, /*tied=*/true);
}

FamilyNames gemma_names() {
  return names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                           {"self_attn.q_proj", Role::kQ},
                           {"self_attn.k_proj", Role::kK},
                           {"self_attn.v_proj", Role::kV},
                           {"self_attn.q_norm", Role::kQNorm},
                           {"self_attn.k_norm", Role::kKNorm},
                           {"self_attn.o_proj", Role::kO},
                           {"post_attention_layernorm", Role::kAttentionPostNorm},
                           {"pre_feedforward_layernorm", Role::kMlpNorm},
                           {"mlp.gate_proj", Role::kGate},
                           {"mlp.up_proj", Role::kUpOfGate},
                           {"mlp.down_proj", Role::kDown},
                           {"post_feedforward_layernorm", Role::kMlpPostNorm}});
}

}  // namespace

HfFamily hf_gemma() { return {"gemma", "gemma", "GemmaForCausalLM", gemma1_config, llama_names()}; }

HfFamily hf_gemma2() { return {"gemma2", "gemma2", "Gemma2ForCausalLM", gemma2_config, gemma_names()}; }

HfFamily hf_gemma3() { return {"gemma3", "gemma3_text", "Gemma3ForCausalLM", gemma3_config, gemma_names()}; }

}  // namespace ostro::hf
