#include "ostro/experiment/plan/expand.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/config/codec.h"
#include "ostro/config/yaml.h"
#include "ostro/experiment/plan/declared.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/experiment/plan/phases.h"
#include "ostro/experiment/plan/seeds.h"

namespace ostro::lab {
namespace {

using config::Node;

// The values of a step's parameters, with those of variables inside values of variables.
constexpr int64_t kMostNestedValues = 100'000;

// Replaces variables of the sweep by their values, everywhere below the node. `left`: how many values there
// may still be.
Status substitute(Node& node, const std::map<std::string, Node>& values, const std::string& step,
                  int64_t& left) {
  if (--left < 0)
    return plan_error(node, fmt::format("step {}: its parameters, with the values of its sweep put into each "
                                        "other, are more than {} values",
                                        step, kMostNestedValues));
  if (is_variable(node)) {
    const auto found = values.find(node.text.substr(1));
    if (found == values.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : values) known.push_back(name);
      return unknown_word(node, fmt::format("step {}: its sweep has no variable", step), node.text.substr(1),
                          known);
    }
    const std::string key = node.key, where = node.where;
    node = found->second;
    node.key = key;
    node.where = where;
    if (node.items.empty()) return {};
    // A value may have variables in it; it cannot have itself.
    std::map<std::string, Node> others = values;
    others.erase(found->first);
    for (Node& item : node.items) RETURN_IF_ERROR(substitute(item, others, step, left));
    return {};
  }
  for (Node& item : node.items) RETURN_IF_ERROR(substitute(item, values, step, left));
  return {};
}

// Reads the scalars below the node as a configuration does, so that equal values have one text: .5 and 0.5,
// True and true.
Status make_typed(Node& node, const std::string& path) {
  const auto take = [&](auto value) -> Status {
    RETURN_IF_ERROR(config::read_value(node, path, &value));
    const std::string key = node.key, where = node.where;
    node = config::write_value(value, config::Write::kCanonical);
    node.key = key;
    node.where = where;
    return {};
  };
  if (node.kind == Node::Kind::kBool) return take(false);
  if (node.kind == Node::Kind::kInt) return take(int64_t{0});
  if (node.kind == Node::Kind::kDouble) return take(0.0);
  for (Node& item : node.items)
    RETURN_IF_ERROR(make_typed(item, item.key.empty() ? path : path + "." + item.key));
  return {};
}

// A number as a configuration reads it; below 0 if it is none.
double number_of(const Node& node) {
  double value = -1;
  return config::read_value(node, "", &value).ok() ? value : -1;
}

Status check_type(const Node& node, const Parameter& p, const std::string& step) {
  const auto wrong = [&](const char* expected) {
    return plan_error(node, fmt::format("step {}: {}: expected {}, got {}", step, p.name, expected,
                                        node.is_scalar() ? "\"" + node.text + "\"" : kind_name(node.kind)));
  };
  const auto is_text = [](const Node& n) { return n.kind == Node::Kind::kString && !n.text.empty(); };
  if (p.type == ValueType::kText && !is_text(node)) return wrong(value_type_text(p.type));
  if ((p.type == ValueType::kTexts || p.type == ValueType::kWords) &&
      (node.kind != Node::Kind::kList || !std::all_of(node.items.begin(), node.items.end(), is_text)))
    return wrong("a list of texts");
  if ((p.type == ValueType::kTexts || p.type == ValueType::kWords) && p.required && node.items.empty())
    return wrong("at least one text");
  if (p.type == ValueType::kInteger &&
      (node.kind != Node::Kind::kInt || node.text.size() > 18 || std::stoll(node.text) < 1))
    return wrong(value_type_text(p.type));
  if (p.type == ValueType::kNumber) {
    double value = 0;
    if (node.kind == Node::Kind::kString || !config::read_value(node, p.name, &value).ok() || !(value > 0))
      return wrong(value_type_text(p.type));
  }
  const auto is_number = [](const Node& n) {
    return n.kind == Node::Kind::kInt || n.kind == Node::Kind::kDouble;
  };
  const auto is_null = [](const Node& n) { return n.kind == Node::Kind::kNull; };
  if (p.type == ValueType::kShare && !is_null(node) &&
      !(is_number(node) && number_of(node) >= 0 && number_of(node) <= 1))
    return wrong(value_type_text(p.type));
  if (p.type == ValueType::kRange && !is_null(node) &&
      !(node.kind == Node::Kind::kList && node.items.size() == 2 &&
        std::all_of(node.items.begin(), node.items.end(),
                    [&](const Node& n) { return is_number(n) || is_null(n); })))
    return wrong(value_type_text(p.type));
  if (p.type == ValueType::kRange && !is_null(node) && is_number(node.items[0]) && is_number(node.items[1]) &&
      number_of(node.items[0]) > number_of(node.items[1]))
    return plan_error(node, fmt::format("step {}: {}: no number is from {} to {}: the range is [least, most]",
                                        step, p.name, node.items[0].text, node.items[1].text));
  if (p.type == ValueType::kSettings && node.kind != Node::Kind::kMap) return wrong(value_type_text(p.type));
  return {};
}

std::string instance_name(const std::string& family, const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [variable, label] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", variable, label);
  return text.empty() ? family : family + "[" + text + "]";
}

class Expansion {
 public:
  explicit Expansion(const Node& steps) : steps_(&steps) {}

  Result<std::vector<Step>> all() {
    for (const Node& node : steps_->items) {
      ASSIGN_OR_RETURN(Declared declared, read_step(node, *steps_));
      declared_[node.key] = std::move(declared);
    }
    for (const Node& node : steps_->items) RETURN_IF_ERROR(visit(node.key));
    return std::move(out_);
  }

 private:
  // Expands a step after its inputs.
  Status visit(const std::string& name) {
    Declared& step = declared_.at(name);
    if (step.is_expanded) return {};
    if (const auto begun = std::find(open_.begin(), open_.end(), name); begun != open_.end()) {
      std::string circle;
      for (auto it = begun; it != open_.end(); ++it) circle += *it + " needs ";
      return plan_error(*step.node, fmt::format("steps need each other in a circle: {}{}", circle, name));
    }
    open_.push_back(name);
    for (const auto& [unused, input] : step.inputs) RETURN_IF_ERROR(visit(input));
    for (const std::string& input : step.families) RETURN_IF_ERROR(visit(input));
    open_.pop_back();
    step.is_expanded = true;
    return expand(name, step);
  }

  Status expand(const std::string& name, const Declared& declared) {
    std::vector<Step> some(1);
    some[0].family = name;
    some[0].kind = declared.kind;
    // One step for each choice of the inputs. Two inputs that were made with the same variable go together
    // where it has the same value.
    for (const auto& [parameter, input] : declared.inputs) {
      std::vector<Step> more;
      for (const Step& step : some)
        for (const Step& made : out_) {
          if (made.family != input) continue;
          Step next = step;
          bool agrees = true;
          for (const auto& [variable, label] : made.labels)
            agrees &= next.labels.emplace(variable, label).first->second == label;
          next.inputs[parameter] = made.name;
          if (more.size() == kMostSteps) return too_many(name, declared);
          if (agrees) more.push_back(std::move(next));
        }
      some = std::move(more);
    }
    for (const std::string& family : declared.families)
      for (const Step& made : out_)
        if (made.family == family)
          for (Step& step : some) step.inputs[made.name] = made.name;
    std::vector<std::pair<Step, std::map<std::string, Node>>> chosen;
    for (Step& step : some) chosen.emplace_back(std::move(step), std::map<std::string, Node>{});
    for (const auto& [variable, choices] : declared.sweep) {
      std::vector<std::pair<Step, std::map<std::string, Node>>> more;
      for (const auto& [step, values] : chosen) {
        // A training that goes on behind a rung has the choices of the one that it goes on with.
        const auto chosen_before = step.labels.find(variable);
        const bool is_chosen = chosen_before != step.labels.end();
        if (is_chosen && !declared.inputs.contains(kBegun))
          return plan_error(
              *declared.node,
              fmt::format("step {}: sweep.{}: its input has a variable of this name; use another", name,
                          variable));
        for (const auto& [label, value] : choices) {
          if (is_chosen && chosen_before->second != label) continue;
          if (more.size() == kMostSteps) return too_many(name, declared);
          more.emplace_back(step, values);
          more.back().first.labels[variable] = label;
          more.back().second[variable] = value;
        }
      }
      chosen = std::move(more);
    }
    for (auto& [step, values] : chosen) {
      step.name = instance_name(name, step.labels);
      step.where = declared.node->where;
      RETURN_IF_ERROR(fill(declared, values, step));
      out_.push_back(std::move(step));
      if (out_.size() > kMostSteps) return too_many(name, declared);
    }
    return {};
  }

  static Status too_many(const std::string& name, const Declared& declared) {
    return plan_error(*declared.node,
                      fmt::format("step {}: the plan has more than {} steps", name, kMostSteps));
  }

  static Status fill(const Declared& declared, const std::map<std::string, Node>& values, Step& step) {
    step.parameters = Node::map();
    int64_t left = kMostNestedValues;
    for (const Parameter& p : declared.kind->parameters) {
      if (p.type == ValueType::kStep || p.type == ValueType::kSteps || p.type == ValueType::kFamilies ||
          p.type == ValueType::kParts)
        continue;
      const Node* given = declared.parameters->find(p.name);
      if (given == nullptr && p.default_value.empty()) continue;
      Node value;
      if (given == nullptr) {
        ASSIGN_OR_RETURN(value, config::parse_yaml("v: " + p.default_value, "default", false));
        value = value.items[0];
      } else {
        value = *given;
      }
      if (p.type == ValueType::kPhases)  // their data are inputs
        for (Node& phase : value.items)
          if (Node* data = phase.find("data"); data != nullptr)
            for (Node& part : data->items) part.text = part.key;
      RETURN_IF_ERROR(substitute(value, values, step.name, left));
      if (has_seeds(value) && p.type != ValueType::kSettings && p.type != ValueType::kWords &&
          p.type != ValueType::kPhases)
        return plan_error(value,
                          fmt::format("step {}: {}: a seed of the registration can stand in `set` of a "
                                      "training, or among the words of a program",
                                      step.name, p.name));
      RETURN_IF_ERROR(make_typed(value, fmt::format("step {}: {}", step.name, p.name)));
      if (p.type == ValueType::kWords)
        for (Node& word : value.items)
          if (word.is_scalar() && word.kind != Node::Kind::kNull) word.kind = Node::Kind::kString;
      RETURN_IF_ERROR(check_type(value, p, step.name));
      if (p.type == ValueType::kPhases) RETURN_IF_ERROR(read_phases(value, step.name));
      step.parameters.put(p.name, std::move(value));
    }
    return {};
  }

  static constexpr size_t kMostSteps = 10'000;
  const Node* steps_;
  std::map<std::string, Declared> declared_;
  std::vector<std::string> open_;  // whose inputs are being expanded, from the outermost
  std::vector<Step> out_;
};

}  // namespace

Result<std::vector<Step>> expand_steps(const Node& steps) { return Expansion(steps).all(); }

}  // namespace ostro::lab
