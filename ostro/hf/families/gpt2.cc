// GPT-2: matrices are [in, out], learned positions.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void gpt2_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  f.integer("vocab_size", &m.vocab);
  f.integer("n_embd", &o.hidden_dim);
  std::optional<int64_t> inner = o.intermediate_dim;
  f.integer("n_inner", &inner);
  o.intermediate_dim = inner.value_or(4 * o.hidden_dim);
  f.integer("n_layer", &o.num_layers);
  f.integer("n_head", &o.num_heads);
  length_field(f, m, "n_positions", 1024);
  f.activation("activation_function", &o.activation_function, models::Activation::kGeluTanh);
  f.number("layer_norm_epsilon", &o.layer_norm_epsilon, 1e-5);
  f.must("scale_attn_weights", true);
  f.must("scale_attn_by_inverse_layer_idx", false);
  f.must("add_cross_attention", false);
  f.boolean("tie_word_embeddings", &o.tie_word_embeddings, true);
  f.number("initializer_range", &o.initializer_range, 0.02);
}

}  // namespace

HfFamily hf_gpt2() {
  return {"gpt2",
          "gpt2",
          "GPT2LMHeadModel",
          gpt2_config,
          {"transformer.",
           "transformer.h.",
           {{"transformer.wte", Role::kEmbedding}, {"transformer.wpe", Role::kPositions}},
           {{"ln_1", Role::kAttentionNorm},
            {"attn.c_attn", Role::kQkvOfKinds, /*columns=*/true},
            {"attn.c_proj", Role::kO, /*columns=*/true},
            {"ln_2", Role::kMlpNorm},
            {"mlp.c_fc", Role::kUp, /*columns=*/true},
            {"mlp.c_proj", Role::kDown, /*columns=*/true}},
           {{"transformer.ln_f", Role::kFinalNorm}, {"lm_head", Role::kHead}},
           {"*.attn.bias", "*.attn.masked_bias"}}};  // masks
}

}  // namespace ostro::hf
