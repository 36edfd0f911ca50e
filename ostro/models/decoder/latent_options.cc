// visit_latent, check_latent: the options of latent attention, in which keys and values are projections of
// one short vector for each token (DeepSeek-V2, arXiv 2405.04434).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/models/decoder/checks.h"
#include "ostro/models/decoder/family_keys.h"
#include "ostro/numerics/functions.h"

namespace ostro::models {

using config::Effect;
using config::option_error;

void visit_latent(DecoderOptions& o, FamilyKeys& t) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const bool optional = o.family->shows("num_kv_heads");  // the family may have other attention
  const Settings base =
      optional ? Settings{{"model.num_heads", "4"}, {"model.num_kv_heads", "4"}, {"model.kv_lora_rank", "16"}}
               : Settings{};
  const DecoderOptions own(o.family->name);
  came_later(
      t.add(&o.kv_lora_rank, "kv_lora_rank", Effect::kBits, "",
            optional ? "width of the vector of which each head's keys and values are made (latent "
                       "attention); 0: they are made of the layer's input"
                     : "width of the vector of which each head's keys and values are made")
          .other("24")
          .beside(optional ? Settings{{"model.num_heads", "4"}, {"model.num_kv_heads", "4"}} : Settings{})
          .fixed(kLayout),
      own.kv_lora_rank == 0, "0");
  const auto add = [&](int64_t DecoderOptions::* field, const char* key, const char* other, int64_t before,
                       const char* help) {
    came_later(t.add(&(o.*field), key, Effect::kBits, "", help).other(other).beside(base).fixed(kLayout),
               own.*field == before, fmt::format("{}", before));
  };
  add(&DecoderOptions::q_lora_rank, "q_lora_rank", "24", 0,
      "width of the vector of which queries are made; 0: of the layer's input");
  add(&DecoderOptions::qk_nope_head_dim, "qk_nope_head_dim", "24", 32,
      "the part of a head's queries and keys that has no position");
  add(&DecoderOptions::qk_rope_head_dim, "qk_rope_head_dim", "8", 16,
      "the part of a head's queries and keys that turns, behind the other; all heads have the same keys "
      "there");
  add(&DecoderOptions::v_head_dim, "v_head_dim", "24", 32, "width of a head's values");
}

namespace {

Status check_widths(const DecoderOptions& o) {
  RETURN_IF_ERROR(check_positive("model.qk_nope_head_dim", o.qk_nope_head_dim));
  RETURN_IF_ERROR(check_positive("model.v_head_dim", o.v_head_dim));
  if (o.qk_rope_head_dim < 2 || o.qk_rope_head_dim % 2 != 0)
    return option_error("model.qk_rope_head_dim",
                        fmt::format("{} is not a positive even number; pairs turn", o.qk_rope_head_dim));
  if (o.cache_dim() > ir::kMaxHeadDim)
    return option_error(o.v_head_dim > o.latent_head_dim() ? "model.v_head_dim" : "model.qk_nope_head_dim",
                        fmt::format("a head of {} is wider than {}, the widest that attention takes",
                                    o.cache_dim(), ir::kMaxHeadDim));
  return {};
}

}  // namespace

Status check_latent(DecoderOptions& o) {
  if (o.kv_lora_rank < 0)
    return option_error("model.kv_lora_rank", fmt::format("{} is negative; 0 is for none", o.kv_lora_rank));
  if (o.q_lora_rank < 0)
    return option_error("model.q_lora_rank", fmt::format("{} is negative; 0 is for none", o.q_lora_rank));
  if (o.kv_lora_rank == 0 && o.q_lora_rank > 0)
    return option_error("model.q_lora_rank",
                        fmt::format("{} needs model.kv_lora_rank above 0", o.q_lora_rank));
  if (o.kv_lora_rank == 0) {
    if (o.family->shows("num_kv_heads") || !o.family->shows("kv_lora_rank")) return {};
    return option_error("model.kv_lora_rank",
                        fmt::format("0, but the family {} has latent attention; use 1 or more, or another "
                                    "model.type",
                                    o.family->name));
  }
  RETURN_IF_ERROR(check_widths(o));
  if (o.num_kv_heads != o.num_heads)
    return option_error(
        "model.num_kv_heads",
        fmt::format("{}, but with model.kv_lora_rank each of model.num_heads {} heads has keys "
                    "of its own; set it to {}",
                    o.num_kv_heads, o.num_heads, o.num_heads));
  if (o.head_dim && *o.head_dim != o.latent_head_dim())
    return option_error("model.head_dim", fmt::format("{} is not the sum of model.qk_nope_head_dim {} and "
                                                      "model.qk_rope_head_dim {}; leave it out",
                                                      *o.head_dim, o.qk_nope_head_dim, o.qk_rope_head_dim));
  o.head_dim = o.latent_head_dim();
  if (o.positions != Positions::kRope)
    return option_error("model.positions", "learned, but with model.kv_lora_rank a part of each head turns");
  if (o.partial_rotary_factor != 1)
    return option_error("model.partial_rotary_factor",
                        fmt::format("{}, but with model.kv_lora_rank the part that turns is "
                                    "model.qk_rope_head_dim",
                                    o.partial_rotary_factor));
  if (o.qk_norm != QkNorm::kNone)
    return option_error("model.qk_norm",
                        "the vectors of model.kv_lora_rank have norms of their own; use none");
  if (o.mup_base_dim)
    return invalid_argument(
        "model.mup_base_dim: there are no rules for the projections of model.kv_lora_rank; leave one of them "
        "out");
  return {};
}

void add_latent_axes(const DecoderOptions& o, config::IntMap& axes) {
  if (o.kv_lora_rank == 0) return;
  if (o.q_lora_rank > 0) axes.emplace_back("q_rank", o.q_lora_rank);
  axes.emplace_back("kv_rank", o.kv_lora_rank);
}

int64_t DecoderOptions::cache_dim() const {
  return kv_lora_rank > 0 ? std::max(latent_head_dim(), v_head_dim) : head_dim.value_or(0);
}

double DecoderOptions::attention_scale() const {
  // The second factor of a yarn rope multiplies queries and keys, so its square multiplies scores
  // (DeepSeek-V2's mscale_all_dim).
  const auto* yarn = std::get_if<RopeYarnOptions>(&rope);
  double stretch = 1;
  if (yarn != nullptr && yarn->mscale_all_dim)
    stretch = 0.1 * *yarn->mscale_all_dim * numerics::log_f64(yarn->factor) + 1;
  const double square = stretch * stretch;
  if (attention_multiplier) return *attention_multiplier * square;
  if (query_pre_attn_scalar) return 1.0 / std::sqrt(*query_pre_attn_scalar) * square;
  // The scale follows from the width of a head without its padding.
  if (square == 1 && kv_lora_rank == 0) return 0;
  return 1.0 / std::sqrt(static_cast<double>(*head_dim)) * square;
}

}  // namespace ostro::models
