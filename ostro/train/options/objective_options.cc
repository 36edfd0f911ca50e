#include "ostro/train/options/objective_options.h"

#include <fmt/format.h>

#include <cmath>

namespace ostro::train {

using config::Effect;
using config::option_error;

std::vector<std::string> option_names(PairLossType) {
  return {"sigmoid", "sigmoid_norm", "ipo", "hinge", "robust"};
}

void DpoObjective::visit_options(config::OptionTable& t) {
  t.add(&loss_type, "loss_type", Effect::kBits, "",
        "how a pair's loss follows from its margin: sigmoid, sigmoid_norm and ipo (margins a token), hinge, "
        "robust (answers may have been swapped)")
      .other("ipo");
  t.add(&beta, "beta", Effect::kBits, "", "how much a change of log-probabilities weighs; above 0");
  t.add(&label_smoothing, "label_smoothing", Effect::kBits, "",
        "share of pairs that may have the wrong order, 0 to below 0.5; of sigmoid, sigmoid_norm and robust")
      .other("0.1");
}

Status DpoObjective::validate() const {
  config::Mistakes mistakes;
  if (!(beta > 0) || !std::isfinite(beta))
    mistakes.add(
        option_error("objective.beta", fmt::format("{} is not allowed; use a positive number", beta)));
  if (!(label_smoothing >= 0 && label_smoothing < 0.5))
    mistakes.add(
        option_error("objective.label_smoothing",
                     fmt::format("{} is not allowed; use 0 or more and less than 0.5", label_smoothing)));
  if (label_smoothing > 0 && (loss_type == PairLossType::kIpo || loss_type == PairLossType::kHinge))
    mistakes.add(
        option_error("objective.label_smoothing",
                     fmt::format("{} is not allowed with objective.loss_type {}; use sigmoid or robust, or 0",
                                 label_smoothing, loss_type == PairLossType::kIpo ? "ipo" : "hinge")));
  return mistakes.status();
}

}  // namespace ostro::train
