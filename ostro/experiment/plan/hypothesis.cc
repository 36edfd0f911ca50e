#include "ostro/experiment/plan/hypothesis.h"

#include <fmt/format.h>

#include <cmath>

#include "ostro/config/codec.h"
#include "ostro/experiment/plan/declared.h"

namespace ostro::lab {
namespace {

using config::Node;

Result<std::string> hypothesis_text(const Node& item, const char* key) {
  const Node* node = item.find(key);
  if (node == nullptr || node->kind != Node::Kind::kString || node->text.empty())
    return plan_error(node == nullptr ? item : *node,
                      fmt::format("hypotheses.{}.{}: expected a text", item.key, key));
  return node->text;
}

Result<Rule> read_rule(const Node& item, const char* key, bool predicts) {
  ASSIGN_OR_RETURN(const std::string text, hypothesis_text(item, key));
  const auto wrong = [&](const std::string& message) {
    return plan_error(*item.find(key), fmt::format("hypotheses.{}.{}: {}", item.key, key, message));
  };
  const Result<Rule> rule = Rule::parse(text);
  if (!rule.ok()) return wrong(rule.error().message());
  if (!predicts && (rule->uses("low") || rule->uses("high")))
    return wrong("low and high are of the prediction, and there is none; add predict");
  return rule;
}

Result<Prediction> read_prediction(const Node& node, const std::string& name) {
  const std::string what = fmt::format("hypotheses.{}.predict", name);
  if (node.kind != Node::Kind::kMap)
    return plan_error(node, what + ": expected a map with low, high and chance");
  RETURN_IF_ERROR(check_keys(node, what + ": ", {"low", "high", "chance"}));
  Prediction out;
  for (const auto& [key, value] :
       {std::pair{"low", &out.low}, std::pair{"high", &out.high}, std::pair{"chance", &out.chance}}) {
    const Node* given = node.find(key);
    if (given == nullptr) return plan_error(node, fmt::format("{}.{} is missing", what, key));
    RETURN_IF_ERROR(config::read_value(*given, fmt::format("{}.{}", what, key), value));
  }
  if (!std::isfinite(out.low) || !std::isfinite(out.high) || out.low > out.high)
    return plan_error(node, fmt::format("{}: low is {}, and high {}; use two finite numbers, low first", what,
                                        out.low, out.high));
  if (!(out.chance > 0 && out.chance < 1))
    return plan_error(node, fmt::format("{}: chance is {}; use one above 0 and below 1", what, out.chance));
  return out;
}

}  // namespace

Result<std::vector<Hypothesis>> read_hypotheses(const Node& map) {
  if (map.kind != Node::Kind::kMap || map.items.empty())
    return plan_error(map, "hypotheses: expected a map from names to hypotheses");
  std::vector<Hypothesis> out;
  for (const Node& item : map.items) {
    RETURN_IF_ERROR(check_name(item, item.key));
    const std::string what = "hypotheses." + item.key;
    if (item.kind != Node::Kind::kMap) return plan_error(item, what + ": expected a map");
    RETURN_IF_ERROR(check_keys(item, what + ": ", {"metric", "predict", "supported", "refuted"}));
    Hypothesis hypothesis;
    hypothesis.name = item.key;
    hypothesis.where = item.where;
    ASSIGN_OR_RETURN(hypothesis.metric, hypothesis_text(item, "metric"));
    if (const Node* predict = item.find("predict"); predict != nullptr) {
      ASSIGN_OR_RETURN(hypothesis.predict, read_prediction(*predict, item.key));
    }
    ASSIGN_OR_RETURN(hypothesis.supported, read_rule(item, "supported", hypothesis.predict.has_value()));
    ASSIGN_OR_RETURN(hypothesis.refuted, read_rule(item, "refuted", hypothesis.predict.has_value()));
    out.push_back(std::move(hypothesis));
  }
  return out;
}

}  // namespace ostro::lab
