// visit_mixture: the options of a mixture of experts, which replaces the MLP.
#include <fmt/format.h>

#include "ostro/models/decoder/family_keys.h"

namespace ostro::models {

using config::Effect;

std::vector<std::string> option_names(RouterScores) { return {"softmax", "softmax_chosen", "sigmoid"}; }
std::vector<std::string> option_names(GroupScore) { return {"best", "best_two"}; }

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

void visit_groups(DecoderOptions& o, FamilyKeys& t, const Settings& base) {
  const DecoderOptions own(o.family->name);
  const auto with = [&](Settings more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  came_later(t.add(&o.n_group, "n_group", Effect::kBits, "",
                   "groups of neighbours into which the experts are divided; 1: there are none")
                 .other("2")
                 .beside(base),
             own.n_group == 1, "1");
  came_later(t.add(&o.topk_group, "topk_group", Effect::kBits, "",
                   "a token's experts are chosen from so many groups, the best")
                 .other(own.topk_group == 2 ? "1" : "2")
                 .beside(with({{"model.n_group", "2"}})),
             own.topk_group == 1, "1");
  came_later(t.add(&o.group_score, "group_score", Effect::kBits, "",
                   "what a group counts as: its best expert (best), or the sum of its best two (best_two)")
                 .other("best_two")
                 .beside(with({{"model.n_group", "2"}})),
             own.group_score == GroupScore::kBest, "best");
  came_later(t.add(&o.router_bias, "router_bias", Effect::kBits, "",
                   "experts are chosen by score plus a bias, a parameter that begins with 0 and that only "
                   "router_bias_update_rate changes; it is there with that in any case")
                 .beside(base)
                 .fixed(kLayout),
             !own.router_bias, "false");
}

void visit_dense_parts(DecoderOptions& o, FamilyKeys& t, const Settings& base) {
  const DecoderOptions own(o.family->name);
  const auto with = [&](Settings more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  came_later(
      t.add(&o.shared_intermediate_dim, "shared_intermediate_dim", Effect::kBits, "",
            "width of an MLP beside the experts that every token goes to (shared experts); 0: there is none")
          .other("96")
          .beside(base)
          .fixed(kLayout),
      own.shared_intermediate_dim == 0, "0");
  came_later(t.add(&o.shared_expert_gate, "shared_expert_gate", Effect::kBits, "",
                   "what this MLP gives is multiplied by the sigmoid of a learned projection of its input")
                 .beside(with({{"model.shared_intermediate_dim", "64"}}))
                 .fixed(kLayout),
             !own.shared_expert_gate, "false");
  came_later(t.add(&o.first_k_dense_replace, "first_k_dense_replace", Effect::kBits, "",
                   "so many layers, the first, have no experts but one MLP of dense_intermediate_dim")
                 .other(o.first_k_dense_replace == 1 ? "0" : "1")
                 .beside(with({{"model.num_layers", "2"}}))
                 .fixed(kLayout),
             own.first_k_dense_replace == 0, "0");
  came_later(t.add(&o.dense_intermediate_dim, "dense_intermediate_dim", Effect::kBits, "",
                   "width of the MLP of layers without experts")
                 .other("96")
                 .beside(with({{"model.num_layers", "2"}, {"model.first_k_dense_replace", "1"}}))
                 .fixed(kLayout),
             own.dense_intermediate_dim == 688, "688");
}

}  // namespace

void visit_mixture(DecoderOptions& o, FamilyKeys& t) {
  const bool optional = o.family->shows("gated_mlp");  // the family may have no experts
  const auto experts = [&](config::Option& option) -> config::Option& {
    return optional ? option.beside({{"model.num_experts", "4"}}) : option;
  };
  t.add(&o.num_experts, "num_experts", Effect::kBits, "",
        optional
            ? "experts of each layer, each an MLP; a router chooses some for each token. 0: one MLP for all"
            : "experts of each layer, each an MLP; a router chooses some for each token")
      .other(o.n_group > 1 ? "8" : "4")
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
              .other(o.routed_scaling_factor == 2.5 ? "1.5" : "2.5"));
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
  const Settings base = optional ? Settings{{"model.num_experts", "4"}} : Settings{};
  visit_groups(o, t, base);
  visit_dense_parts(o, t, base);
}

nn::MoeRouting DecoderOptions::routing() const {
  nn::MoeRouting r;
  r.top_k = num_experts_per_tok;
  r.sigmoid = router_scores == RouterScores::kSigmoid;
  r.softmax_chosen = router_scores == RouterScores::kSoftmaxChosen;
  r.renormalize = norm_topk_prob;
  r.scale = routed_scaling_factor;
  r.groups = n_group;
  r.top_groups = topk_group;
  r.best_two = group_score == GroupScore::kBestTwo;
  return r;
}

void add_mixture_axes(const DecoderOptions& o, config::IntMap& axes) {
  if (o.num_experts == 0) return;
  axes.emplace_back("experts", o.num_experts);
  if (o.shared_intermediate_dim > 0) axes.emplace_back("shared_mlp", o.shared_intermediate_dim);
  if (o.lead() > 0) axes.emplace_back("dense_mlp", o.dense_intermediate_dim);
}

}  // namespace ostro::models
