// The options of a mixture of experts, which takes the place of the MLP.
#include <fmt/format.h>

#include "ostro/models/decoder/checks.h"
#include "ostro/models/decoder/family_keys.h"

namespace ostro::models {

using config::Effect;
using config::option_error;

std::vector<std::string> option_names(RouterScores) { return {"softmax", "softmax_chosen", "sigmoid"}; }

void visit_mixture(DecoderOptions& o, FamilyKeys& t) {
  const bool optional = o.family->shows("gated_mlp");  // the family may have no experts
  const auto experts = [&](config::Option& option) -> config::Option& {
    return optional ? option.beside({{"model.num_experts", "4"}}) : option;
  };
  t.add(&o.num_experts, "num_experts", Effect::kBits, "",
        optional
            ? "experts of each layer, each an MLP; a router chooses some for each token. 0: one MLP for all"
            : "experts of each layer, each an MLP; a router chooses some for each token")
      .other("4")
      .fixed(kLayout);
  experts(t.add(&o.num_experts_per_tok, "num_experts_per_tok", Effect::kBits, "",
                "how many experts a token goes to")
              .other(o.num_experts_per_tok == 1 ? "2" : "1"));
  experts(t.add(&o.router_scores, "router_scores", Effect::kBits, "",
                "what the router's logits become. softmax: over all experts, before some are chosen; "
                "softmax_chosen: over those that were chosen; sigmoid: each by itself")
              .other(o.router_scores == RouterScores::kSigmoid ? "softmax" : "sigmoid"));
  experts(t.add(&o.norm_topk_prob, "norm_topk_prob", Effect::kBits, "",
                "the weights of a token's experts are divided by their sum"));
  experts(t.add(&o.routed_scaling_factor, "routed_scaling_factor", Effect::kBits, "",
                "the weights of a token's experts are multiplied by it")
              .other("2.5"));
  experts(t.add(&o.router_z_loss_coef, "router_z_loss_coef", Effect::kBits, "",
                "weight in a token's loss of the squared log normaliser of the router's logits")
              .other("0.001"));
  const auto tracked = [&](config::Option& option) {
    std::vector<std::pair<std::string, std::string>> needs = {{"model.track_expert_load", "true"}};
    if (optional) needs.emplace_back("model.num_experts", "4");
    option.beside(needs);
  };
  experts(t.add(&o.track_expert_load, "track_expert_load", Effect::kBits, "",
                "a parameter moe/load keeps which share of the rows each expert got in the last step; it is "
                "reported, and router_aux_loss_coef and router_bias_update_rate need it"))
      .fixed(kLayout);
  tracked(
      t.add(&o.router_aux_loss_coef, "router_aux_loss_coef", Effect::kBits, "",
            "weight in a token's loss of the Switch loss: experts times the sum of score times load, of the "
            "batch of the step before")
          .other("0.1"));
  tracked(
      t.add(&o.router_bias_update_rate, "router_bias_update_rate", Effect::kBits, "",
            "experts are chosen by score plus a bias, which every step raises by it for experts with fewer "
            "rows than the mean and lowers for the others; 0: there is no bias")
          .other("0.01")
          .fixed(kLayout));
}

namespace {

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
    if (o.family->shows("gated_mlp") || !o.family->shows("num_experts")) return {};
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
  if (!o.gated_mlp)
    return option_error("model.gated_mlp",
                        fmt::format("false, with model.num_experts {}; experts have gates", o.num_experts));
  if (o.mlp_bias)
    return option_error(
        "model.mlp_bias",
        fmt::format("true, with model.num_experts {}; experts have no biases", o.num_experts));
  return {};
}

nn::MoeRouting DecoderOptions::routing() const {
  nn::MoeRouting r;
  r.top_k = num_experts_per_tok;
  r.sigmoid = router_scores == RouterScores::kSigmoid;
  r.softmax_chosen = router_scores == RouterScores::kSoftmaxChosen;
  r.renormalize = norm_topk_prob;
  r.scale = routed_scaling_factor;
  return r;
}

}  // namespace ostro::models
