// check_mixture: checks that the options of a mixture of experts fit together.
#include <fmt/format.h>

#include "ostro/models/decoder/checks.h"
#include "ostro/models/decoder/family_keys.h"

namespace ostro::models {

using config::option_error;

namespace {

Status check_groups(const DecoderOptions& o) {
  RETURN_IF_ERROR(check_positive("model.n_group", o.n_group));
  RETURN_IF_ERROR(check_positive("model.topk_group", o.topk_group));
  if (o.num_experts % o.n_group != 0)
    return option_error("model.n_group", fmt::format("{} groups of equal size cannot be made of "
                                                     "model.num_experts, which is {}",
                                                     o.n_group, o.num_experts));
  const int64_t members = o.num_experts / o.n_group;
  if (o.topk_group > o.n_group)
    return option_error("model.topk_group",
                        fmt::format("{} is above model.n_group, which is {}", o.topk_group, o.n_group));
  if (o.num_experts_per_tok > members * o.topk_group)
    return option_error(
        "model.num_experts_per_tok",
        fmt::format("{} is above {}, the experts in model.topk_group {} of model.n_group {} groups",
                    o.num_experts_per_tok, members * o.topk_group, o.topk_group, o.n_group));
  if (o.group_score == GroupScore::kBestTwo && members < 2)
    return option_error("model.group_score",
                        fmt::format("best_two, but model.n_group {} groups of model.num_experts {} have one "
                                    "expert each; use best or fewer groups",
                                    o.n_group, o.num_experts));
  return {};
}

Status check_dense_parts(const DecoderOptions& o) {
  if (o.shared_intermediate_dim < 0)
    return option_error("model.shared_intermediate_dim",
                        fmt::format("{} is negative; 0 is for none", o.shared_intermediate_dim));
  if (o.shared_expert_gate && o.shared_intermediate_dim == 0)
    return option_error("model.shared_expert_gate",
                        "true needs model.shared_intermediate_dim above 0; without it there is nothing to "
                        "weight");
  if (o.first_k_dense_replace < 0 || o.first_k_dense_replace >= o.num_layers)
    return option_error(
        "model.first_k_dense_replace",
        fmt::format("{} of model.num_layers {}; a mixture has at least one layer with experts",
                    o.first_k_dense_replace, o.num_layers));
  return check_positive("model.dense_intermediate_dim", o.dense_intermediate_dim);
}

// Keys of a mixture that a model without experts has no use for.
Status check_no_mixture(const DecoderOptions& o) {
  const auto needs = [](const char* key, auto value) {
    return option_error(key, fmt::format("{} needs model.num_experts above 0", value));
  };
  if (o.n_group != 1) return needs("model.n_group", o.n_group);
  if (o.router_bias) return needs("model.router_bias", o.router_bias);
  if (o.shared_intermediate_dim != 0)
    return needs("model.shared_intermediate_dim", o.shared_intermediate_dim);
  if (o.first_k_dense_replace != 0) return needs("model.first_k_dense_replace", o.first_k_dense_replace);
  return {};
}

Status check_balance(const DecoderOptions& o) {
  for (const auto& [key, value] : {std::pair{"model.router_z_loss_coef", o.router_z_loss_coef},
                                   std::pair{"model.router_aux_loss_coef", o.router_aux_loss_coef},
                                   std::pair{"model.router_bias_update_rate", o.router_bias_update_rate}})
    if (!(value >= 0)) return option_error(key, fmt::format("{} is negative", value));
  for (const auto& [key, value] : {std::pair{"model.router_aux_loss_coef", o.router_aux_loss_coef},
                                   std::pair{"model.router_bias_update_rate", o.router_bias_update_rate}})
    if (value > 0 && !o.track_expert_load)
      return option_error(key, fmt::format("{} needs model.track_expert_load true", value));
  return {};
}

}  // namespace

Status check_mixture(const DecoderOptions& o) {
  if (o.num_experts == 0) {
    if (o.family->shows("gated_mlp") || !o.family->shows("num_experts")) return check_no_mixture(o);
    return option_error("model.num_experts",
                        fmt::format("0, but the family {} is a mixture of experts; use 2 "
                                    "or more, or another model.type",
                                    o.family->name));
  }
  RETURN_IF_ERROR(check_positive("model.num_experts", o.num_experts));
  RETURN_IF_ERROR(check_positive("model.num_experts_per_tok", o.num_experts_per_tok));
  if (o.num_experts_per_tok > o.num_experts)
    return option_error("model.num_experts_per_tok", fmt::format("{} is above model.num_experts, which is {}",
                                                                 o.num_experts_per_tok, o.num_experts));
  RETURN_IF_ERROR(check_positive("model.routed_scaling_factor", o.routed_scaling_factor));
  RETURN_IF_ERROR(check_balance(o));
  RETURN_IF_ERROR(check_groups(o));
  RETURN_IF_ERROR(check_dense_parts(o));
  if (!o.gated_mlp)
    return option_error("model.gated_mlp",
                        fmt::format("false, with model.num_experts {}; experts have gates", o.num_experts));
  if (o.mlp_bias)
    return option_error(
        "model.mlp_bias",
        fmt::format("true, with model.num_experts {}; experts have no biases", o.num_experts));
  return {};
}

}  // namespace ostro::models
