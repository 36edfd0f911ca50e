// GPT-NeoX and Pythia: q, k and v of each head are one after the other.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void gpt_neox_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  size_fields(f, m);
  f.activation("hidden_act", &o.activation_function, models::Activation::kGelu);
  length_field(f, m, "max_position_embeddings", 2048);
  f.number("layer_norm_eps", &o.layer_norm_epsilon, 1e-5);
  // The names of older files.
  double theta = models::rope_theta(o.rope), part = o.partial_rotary_factor;
  f.number("rotary_emb_base", &theta, 10000);
  f.number("rotary_pct", &part, 0.25);
  f.rope(&o.rope, theta, o.seq_len, &o.partial_rotary_factor, part);
  // Programs prefer the one or the other.
  if (f.reading() && f.has("rotary_emb_base") && models::rope_theta(o.rope) != theta)
    f.fail(corrupt(fmt::format("{}: \"rotary_emb_base\" is {}, but \"rope_theta\" {}", f.where(), theta,
                               models::rope_theta(o.rope))));
  if (f.reading() && f.has("rotary_pct") && o.partial_rotary_factor != part)
    f.fail(corrupt(fmt::format("{}: \"rotary_pct\" is {}, but \"partial_rotary_factor\" {}", f.where(), part,
                               o.partial_rotary_factor)));
  f.boolean("use_parallel_residual", &o.parallel, true);
  attention_bias_field(f, m, true);
  last_fields(f, m);
}

}  // namespace

HfFamily hf_gpt_neox() {
  return {"gpt_neox",
          "gpt_neox",
          "GPTNeoXForCausalLM",
          gpt_neox_config,
          {"gpt_neox.",
           "gpt_neox.layers.",
           {{"gpt_neox.embed_in", Role::kEmbedding}},
           {{"input_layernorm", Role::kAttentionNorm},
            {"attention.query_key_value", Role::kQkvOfHeads},
            {"attention.dense", Role::kO},
            {"post_attention_layernorm", Role::kMlpNorm},
            {"mlp.dense_h_to_4h", Role::kUp},
            {"mlp.dense_4h_to_h", Role::kDown}},
           {{"gpt_neox.final_layer_norm", Role::kFinalNorm}, {"embed_out", Role::kHead}},
           {"*.attention.bias", "*.attention.masked_bias", "*.attention.rotary_emb.inv_freq",
            "*.rotary_emb.inv_freq"}}};
}

}  // namespace ostro::hf
