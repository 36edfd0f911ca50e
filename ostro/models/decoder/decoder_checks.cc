// DecoderOptions: checks of values that depend on each other, and the quantities computed from options.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/models/decoder/checks.h"
#include "ostro/models/decoder/family_keys.h"

namespace ostro::models {

using config::option_error;

namespace {

// Layers, or experts of all layers: their names are listed, which must not take minutes (a stranger's file).
constexpr int64_t kMostBlocks = 200'000;

Status check_heads(DecoderOptions& o) {
  if (!o.family->shows("num_kv_heads")) o.num_kv_heads = o.num_heads;
  RETURN_IF_ERROR(check_positive("model.num_kv_heads", o.num_kv_heads));
  if (o.num_heads % o.num_kv_heads != 0)
    return option_error("model.num_heads",
                        fmt::format("{} is not a multiple of model.num_kv_heads, which is {}; each "
                                    "key head serves the same number of query heads",
                                    o.num_heads, o.num_kv_heads));
  RETURN_IF_ERROR(check_latent(o));
  if (!o.head_dim) {
    if (o.hidden_dim % o.num_heads != 0)
      return option_error("model.hidden_dim",
                          fmt::format("{} is not a multiple of model.num_heads, which is {}; "
                                      "change one of them{}",
                                      o.hidden_dim, o.num_heads,
                                      o.family->shows("head_dim") ? " or set model.head_dim" : ""));
    o.head_dim = o.hidden_dim / o.num_heads;
  }
  if (o.kv_lora_rank > 0) return {};
  // With a partial_rotary_factor, check_positions() says whether the part that turns has pairs.
  const bool all_turns = o.positions == Positions::kRope && o.partial_rotary_factor == 1;
  if (all_turns && *o.head_dim % 2 != 0)
    return option_error("model.head_dim",
                        fmt::format("{} is not a positive even number; rotary position codes turn "
                                    "pairs (null means hidden_dim / num_heads = {} / {})",
                                    *o.head_dim, o.hidden_dim, o.num_heads));
  RETURN_IF_ERROR(check_positive("model.head_dim", *o.head_dim));
  if (*o.head_dim > ir::kMaxHeadDim)
    return option_error(
        "model.head_dim",
        fmt::format("{} is above {}, the widest head that attention takes; use more and narrower heads "
                    "(null means hidden_dim / num_heads = {} / {})",
                    *o.head_dim, ir::kMaxHeadDim, o.hidden_dim, o.num_heads));
  return {};
}

Status check_positions(const DecoderOptions& o) {
  if (o.positions == Positions::kLearned) {
    RETURN_IF_ERROR(check_positive("model.max_position_embeddings", o.max_position_embeddings));
    if (o.seq_len > o.max_position_embeddings)
      return option_error(
          "model.seq_len",
          fmt::format("{} is above model.max_position_embeddings, which is {}; every position needs a vector",
                      o.seq_len, o.max_position_embeddings));
    return {};
  }
  RETURN_IF_ERROR(check_rope(o.rope, o.rotary_dim()));
  RETURN_IF_ERROR(check_positive("model.rope_local_theta", o.rope_local_theta));
  if (!(o.partial_rotary_factor > 0 && o.partial_rotary_factor <= 1))
    return option_error("model.partial_rotary_factor",
                        fmt::format("{} is not above 0 and at most 1", o.partial_rotary_factor));
  if (o.rotary_dim() < 2 || o.rotary_dim() % 2 != 0)
    return option_error(
        "model.partial_rotary_factor",
        fmt::format("{} of model.head_dim {} are {} elements, which is not a positive even number",
                    o.partial_rotary_factor, *o.head_dim, o.rotary_dim()));
  return {};
}

Status check_combinations(const DecoderOptions& o) {
  if (o.norm_bias && o.norm != NormKind::kLayer)
    return option_error("model.norm_bias", "true needs model.norm layer; RMSNorm has no bias");
  if (o.parallel && o.norm_place == NormPlace::kPost)
    return option_error("model.parallel",
                        "true with model.norm_place post has no norm before the MLP; use pre or sandwich");
  if (o.layer_pattern.empty())
    return option_error("model.layer_pattern", "is empty; name the kind of at least one layer");
  if (o.rope_pattern.empty())
    return option_error("model.rope_pattern", "is empty; say rope or none for at least one layer");
  if (o.attention_multiplier && o.query_pre_attn_scalar)
    return option_error("model.attention_multiplier",
                        fmt::format("{} and model.query_pre_attn_scalar {} both scale the scores; set one",
                                    *o.attention_multiplier, *o.query_pre_attn_scalar));
  return {};
}

}  // namespace

// Sizes first, because later checks divide by them; check_heads() sets head_dim, which the positions need.
Status DecoderOptions::resolve() {
  config::Mistakes mistakes;
  const auto positive = [&](const char* key, const auto& value) {
    return mistakes.add(check_positive(key, value));
  };
  positive("model.seq_len", seq_len);
  positive("model.intermediate_dim", intermediate_dim);
  positive("model.num_layers", num_layers);
  if (num_layers > kMostBlocks / std::max<int64_t>(num_experts, 1)) {
    constexpr const char* most =
        "{} with model.num_experts {}: use {} layers, or experts of all layers, at most";
    mistakes.add(option_error("model.num_layers", fmt::format(most, num_layers, num_experts, kMostBlocks)));
    return mistakes.status();  // later checks look at each layer
  }
  bool sizes = positive("model.hidden_dim", hidden_dim);
  sizes &= positive("model.num_heads", num_heads);
  if (family->shows("num_kv_heads")) sizes &= positive("model.num_kv_heads", num_kv_heads);
  const bool heads = sizes && mistakes.add(check_heads(*this));
  positive("model.layer_norm_epsilon", layer_norm_epsilon);
  positive("model.initializer_range", initializer_range);
  if (mup_base_dim && *mup_base_dim < 1)
    mistakes.add(
        option_error("model.mup_base_dim", fmt::format("{} is not a width; use 1 or more", *mup_base_dim)));
  if (mup_base_dim && num_experts > 0)
    mistakes.add(option_error("model.mup_base_dim",
                              "there are no rules for a mixture's router and experts yet; leave it out, or "
                              "set model.num_experts: 0"));
  if (mup_base_dim && tie_word_embeddings)
    mistakes.add(option_error(
        "model.mup_base_dim",
        "with tie_word_embeddings one weight is embedding and head, whose rates differ in muP; set "
        "model.tie_word_embeddings: false"));
  if (!(z_loss_weight >= 0))
    mistakes.add(option_error("model.z_loss_weight", fmt::format("{} is negative", z_loss_weight)));
  positive("model.vocab_size", vocab_size);
  positive("model.sliding_window", sliding_window);
  positive("model.attn_logit_softcapping", attn_logit_softcapping);
  positive("model.query_pre_attn_scalar", query_pre_attn_scalar);
  positive("model.attention_multiplier", attention_multiplier);
  positive("model.embedding_multiplier", embedding_multiplier);
  positive("model.residual_multiplier", residual_multiplier);
  positive("model.logits_scaling", logits_scaling);
  positive("model.final_logit_softcapping", final_logit_softcapping);
  mistakes.add(check_combinations(*this));
  if (heads) mistakes.add(check_positions(*this));
  mistakes.add(check_mixture(*this));
  if (const auto policy = remat(); !policy.ok()) mistakes.add(policy.error());
  return mistakes.status();
}

DecoderOptions DecoderOptions::for_evaluation() const {
  DecoderOptions copy = *this;
  copy.z_loss_weight = 0;
  copy.for_training = false;
  return copy;
}

std::string DecoderOptions::signature() const {
  DecoderOptions copy = *this;  // declaring options binds to fields that could be written
  copy.family = &family_of("decoder");
  config::OptionTable table;
  copy.visit_options(table);
  return config::flow_text(table.write(config::Write::kAll)) + (for_training ? "" : " evaluation") +
         (released() ? " released" : "") +
         (int8_row_groups == 0 ? "" : " int8 " + std::to_string(int8_row_groups));
}

config::IntMap DecoderOptions::leaf_axes() const {
  config::IntMap axes = {
      {"kv_heads", num_kv_heads}, {"mlp", intermediate_dim}, {"vocab", 0}, {"pos", seq_len}};
  add_mixture_axes(*this, axes);
  return axes;
}

config::IntMap DecoderOptions::cell_axes() const {
  config::IntMap axes = {{"vocab", 0},
                         {"embed", hidden_dim},
                         {"kv_heads", num_kv_heads},
                         {"head_dim", head_dim.value_or(0)},
                         {"mlp", intermediate_dim}};
  add_mixture_axes(*this, axes);
  add_latent_axes(*this, axes);
  return axes;
}

double DecoderOptions::width_ratio() const {
  return mup_base_dim ? static_cast<double>(hidden_dim) / static_cast<double>(*mup_base_dim) : 1;
}

int64_t DecoderOptions::rotary_dim() const {
  if (kv_lora_rank > 0) return qk_rope_head_dim;
  // Towards zero, as transformers does.
  return static_cast<int64_t>(static_cast<double>(*head_dim) * partial_rotary_factor);
}

double DecoderOptions::embedding_scale() const {
  return embedding_multiplier * (scale_embedding ? std::sqrt(static_cast<double>(hidden_dim)) : 1.0);
}

// Both patterns repeat over all layers, the lead included. A window counts only in sliding layers, and the
// local theta only in layers with a window.
LayerSpec DecoderOptions::layer(int64_t i) const {
  const auto of = [i](const auto& pattern) { return pattern[static_cast<size_t>(i) % pattern.size()]; };
  LayerSpec spec;
  const bool sliding = sliding_window && of(layer_pattern) == LayerKind::kSliding;
  if (sliding) spec.window = *sliding_window;
  spec.rope = positions == Positions::kRope && of(rope_pattern) == LayerRope::kRope;
  spec.local_rope = spec.rope && sliding && rope_local_theta.has_value();
  spec.dense = i < lead();
  return spec;
}

int64_t DecoderOptions::period() const {
  std::vector<LayerSpec> specs;
  for (int64_t i = lead(); i < num_layers; ++i) specs.push_back(layer(i));
  const auto repeats = [&](int64_t period) {
    return std::equal(specs.begin() + period, specs.end(), specs.begin());
  };
  int64_t period = 1;
  while (!repeats(period)) ++period;
  return period;
}

LayerPlace DecoderOptions::layer_place(int64_t i) const {
  if (i < lead()) return {fmt::format("model/lead/{}", i), 0};
  if (i >= tail_begin()) return {fmt::format("model/tail/{}", i - tail_begin()), 0};
  const int64_t p = period(), looped = i - lead();
  if (p == 1) return {"model/layers", looped};
  return {fmt::format("model/layers/{}", looped % p), looped / p};
}

}  // namespace ostro::models
