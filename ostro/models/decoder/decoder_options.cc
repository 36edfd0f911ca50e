// DecoderOptions::visit_options: the declarations of a decoder's options. Their order is that of the resolved
// config.
#include "ostro/models/decoder/decoder_options.h"

#include <fmt/format.h>

#include <iterator>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/models/decoder/family_keys.h"

namespace ostro::models {

using config::Effect;

namespace {

void visit_sizes(DecoderOptions& o, FamilyKeys& t) {
  t.add(&o.seq_len, "seq_len", Effect::kBits, "tokens", "length of a training sequence")
      .other("128")
      .fixed("the data is cut into sequences of it, so text that was seen would come again");
  t.add(&o.hidden_dim, "hidden_dim", Effect::kBits, "", "width of the residual stream")
      .other("128")
      .fixed(kLayout);
  t.add(&o.intermediate_dim, "intermediate_dim", Effect::kBits, "", "width of the MLP")
      .other("512")
      .fixed(kLayout);
  t.add(&o.num_layers, "num_layers", Effect::kBits, "", "number of layers").other("3").fixed(kLayout);
  t.add(&o.num_heads, "num_heads", Effect::kBits, "",
        o.family->shows("num_kv_heads") ? "query heads; a multiple of num_kv_heads" : "attention heads")
      .other("8")
      .fixed(kLayout);
  t.add(&o.num_kv_heads, "num_kv_heads", Effect::kBits, "", "key and value heads").other("1").fixed(kLayout);
  t.add(&o.head_dim, "head_dim", Effect::kBits, "",
        fmt::format("width of a head, even where all of it turns, at most {}; null: hidden_dim / num_heads",
                    ir::kMaxHeadDim))
      .other("32")
      .fixed(kLayout);
}

void visit_norms(DecoderOptions& o, FamilyKeys& t) {
  t.add(&o.norm, "norm", Effect::kBits, "",
        "rms: by the root of the mean square; layer: by mean and standard deviation")
      .other("layer")
      .fixed(kMeaning);
  t.add(&o.norm_place, "norm_place", Effect::kBits, "",
        "where attention and MLP have norms. pre: before; post: behind, before the residual sum; sandwich: "
        "both")
      .other("sandwich")
      .fixed(kLayout);
  t.add(&o.norm_scale, "norm_scale", Effect::kBits, "",
        "what a norm multiplies by: weight, or one_plus_weight: 1 + weight")
      .other("one_plus_weight")
      .fixed(kMeaning);
  t.add(&o.norm_bias, "norm_bias", Effect::kBits, "", "norms add a bias; needs norm layer")
      .beside({{"model.norm", "layer"}})
      .fixed(kLayout);
  t.add(&o.parallel, "parallel", Effect::kBits, "",
        "attention and MLP of a layer both read its input, and their sum is added to it");
}

void visit_attention(DecoderOptions& o, FamilyKeys& t) {
  t.add(&o.qkv_bias, "qkv_bias", Effect::kBits, "", "queries, keys and values have biases").fixed(kLayout);
  t.add(&o.out_bias, "out_bias", Effect::kBits, "", "attention's output has a bias").fixed(kLayout);
  t.add(&o.qk_norm, "qk_norm", Effect::kBits, "",
        "norm of queries and keys before they turn. head: over each head; whole: over all heads together")
      .other("head")
      .fixed(kLayout);
  t.add(&o.sliding_window, "sliding_window", Effect::kBits, "tokens",
        "how many keys a query sees in sliding layers, itself included; null: all before it")
      .other("8")
      .beside(o.family->shows("layer_pattern")
                  ? std::vector<std::pair<std::string, std::string>>{{"model.layer_pattern", "[sliding]"}}
                  : std::vector<std::pair<std::string, std::string>>{});
  t.add(&o.layer_pattern, "layer_pattern", Effect::kBits, "",
        "which layers have the window, each full or sliding; repeated until all layers have a kind")
      .other("[full, sliding]")
      .beside({{"model.sliding_window", "8"}})
      .fixed(kLayout);
  t.add(&o.attn_logit_softcapping, "attn_logit_softcapping", Effect::kBits, "",
        "scores s become cap * tanh(s / cap); null: they stay")
      .other("20.0");
  t.add(&o.query_pre_attn_scalar, "query_pre_attn_scalar", Effect::kBits, "",
        "scores are divided by its square root; null: by that of head_dim")
      .other("100.0");
  t.add(&o.attention_multiplier, "attention_multiplier", Effect::kBits, "",
        "scores are multiplied by it; null: divided by the square root of head_dim")
      .other("0.25");
  t.add(&o.attention_sink, "attention_sink", Effect::kBits, "",
        "each query head has a learned logit that takes part in its softmax and has no value")
      .fixed(kLayout);
}

void visit_positions(DecoderOptions& o, FamilyKeys& t) {
  t.add(&o.positions, "positions", Effect::kBits, "",
        "rope: queries and keys turn (model.rope); learned: a vector for each position is added to the "
        "embedding")
      .other("learned")
      .fixed(kLayout);
  t.add(&o.max_position_embeddings, "max_position_embeddings", Effect::kBits, "tokens",
        "positions that have a learned vector; at least seq_len")
      .other("512")
      .beside(o.family->shows("positions")
                  ? std::vector<std::pair<std::string, std::string>>{{"model.positions", "learned"}}
                  : std::vector<std::pair<std::string, std::string>>{})
      .fixed(kLayout);
  t.add(&o.partial_rotary_factor, "partial_rotary_factor", Effect::kBits, "",
        "the part of head_dim that turns; the rest has no position")
      .other(o.partial_rotary_factor == 0.5 ? "1.0" : "0.5");
  t.add(&o.rope_interleaved, "rope_interleaved", Effect::kBits, "",
        "neighbours turn together, (0, 1), (2, 3), ...; false: the two halves of a head");
  t.add(&o.rope_local_theta, "rope_local_theta", Effect::kBits, "",
        "base of the rotary frequencies in layers with a window, which are not stretched; null: model.rope")
      .other("5000.0")
      .beside({{"model.sliding_window", "8"}, {"model.layer_pattern", "[sliding, full]"}});
  t.add(&o.rope_pattern, "rope_pattern", Effect::kBits, "",
        "which layers turn queries and keys, each rope or none; repeated until all layers have one")
      .other("[rope, none]")
      .fixed(kLayout);
}

void visit_rest(DecoderOptions& o, FamilyKeys& t) {
  t.add(&o.gated_mlp, "gated_mlp", Effect::kBits, "",
        "the MLP multiplies by an activated gate; false: it has no gate")
      .fixed(kLayout);
  t.add(&o.mlp_bias, "mlp_bias", Effect::kBits, "", "the MLP's projections have biases").fixed(kLayout);
  t.add(&o.scale_embedding, "scale_embedding", Effect::kBits, "",
        "embeddings are multiplied by the square root of hidden_dim");
  t.add(&o.embedding_multiplier, "embedding_multiplier", Effect::kBits, "",
        "embeddings are multiplied by it");
  t.add(&o.residual_multiplier, "residual_multiplier", Effect::kBits, "",
        "what attention and MLP add to the residual stream is multiplied by it");
  t.add(&o.logits_scaling, "logits_scaling", Effect::kBits, "", "logits are divided by it");
  t.add(&o.final_logit_softcapping, "final_logit_softcapping", Effect::kBits, "",
        "logits x become cap * tanh(x / cap); null: they stay")
      .other("20.0");
  t.add(&o.head_bias, "head_bias", Effect::kBits, "", "the head has a bias").fixed(kLayout);
}

}  // namespace

std::vector<std::string> option_names(Activation) { return {"silu", "gelu", "gelu_new", "relu"}; }
std::vector<std::string> option_names(NormKind) { return {"rms", "layer"}; }
std::vector<std::string> option_names(NormPlace) { return {"pre", "post", "sandwich"}; }
std::vector<std::string> option_names(NormScale) { return {"weight", "one_plus_weight"}; }
std::vector<std::string> option_names(QkNorm) { return {"none", "head", "whole"}; }
std::vector<std::string> option_names(Positions) { return {"rope", "learned"}; }
std::vector<std::string> option_names(LayerKind) { return {"full", "sliding"}; }
std::vector<std::string> option_names(Rounding) { return {"ostro", "released"}; }
std::vector<std::string> option_names(LayerRope) { return {"rope", "none"}; }

DecoderOptions::DecoderOptions(std::string_view family_name) : family(&family_of(family_name)) {
  family->defaults(*this);
}

void DecoderOptions::visit_options(config::OptionTable& table) {
  FamilyKeys t(*family, table);
  visit_sizes(*this, t);
  t.add(&activation_function, "activation_function", Effect::kBits, "",
        gated_mlp ? "activation of the MLP's gate; gelu_new is the tanh form"
                  : "activation of the MLP; gelu_new is the tanh form")
      .other(activation_function == Activation::kGelu ? "silu" : "gelu");
  t.add(&layer_norm_epsilon, "layer_norm_epsilon", Effect::kBits, "",
        norm == NormKind::kRms ? "added to the mean square in RMSNorm" : "added to the variance in LayerNorm")
      .other("0.001");
  t.add(&tie_word_embeddings, "tie_word_embeddings", Effect::kBits, "",
        "use the embedding as the head's weight")
      .fixed(kLayout);
  t.section(&rope, "rope", "kind of rotary position embedding");
  t.add(&gradient_checkpointing, "gradient_checkpointing", Effect::kPlan, "",
        fmt::format(
            "what the backward pass computes again; false: values that cost less than their memory; "
            "everything: no value, all are kept; true or nothing: each layer, from its input; or names of "
            "the values to keep, separated by commas: {}",
            fmt::join(std::begin(kCheckpointNames), std::end(kCheckpointNames), ", ")));
  t.add(&initializer_range, "initializer_range", Effect::kBits, "",
        "standard deviation of the initial weights")
      .fixed("the initial weights were drawn with it");
  if (DecoderOptions(family->name).num_experts > 0)
    table.refuse("mup_base_dim", "there are no rules for a mixture's router and experts yet");
  else
    t.add(
         &mup_base_dim, "mup_base_dim", Effect::kBits, "",
         "muP: learning rate and initializer_range are those of a model of this hidden_dim, and matrices get "
         "what follows from them at this one's; null: they are taken as they are")
        .other("16")
        .beside({{"model.tie_word_embeddings", "false"}})
        .since_default("null")
        .fixed("the initial weights were drawn with it");
  t.add(&vocab_size, "vocab_size", Effect::kBits, "tokens",
        "rows of the embedding and of the head; those that the tokenizer has no token for take part in the "
        "softmax and are never sampled. null: as many as the tokenizer has tokens")
      .other("600")
      .since_default("null")
      .fixed(kLayout);
  t.add(&z_loss_weight, "z_loss_weight", Effect::kBits, "",
        "weight of the squared log normaliser in the loss")
      .other("0.0001");
  visit_norms(*this, t);
  visit_attention(*this, t);
  visit_latent(*this, t);
  visit_positions(*this, t);
  visit_rest(*this, t);
  visit_mixture(*this, t);
  if (type() == "grok")
    table
        .add(
            &rounding, "rounding", Effect::kBits, "",
            "where values are rounded to bf16. ostro: as in all models; released: where the released program "
            "of Grok-1 does it (docs/reference/grok.md), needs compute in bf16")
        .other("released")
        .beside({{"trainer.mp", "p=f32,c=bfloat16"}})
        .since_default("ostro");
  else
    table.refuse("rounding", "only model.type grok has a released program whose rounding is known");
}

}  // namespace ostro::models
