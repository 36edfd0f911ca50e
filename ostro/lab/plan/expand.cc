#include "ostro/lab/plan/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/config/options.h"
#include "ostro/config/yaml.h"

namespace ostro::lab {
namespace {

using config::Node;

// A step as the plan declares it.
struct Declared {
  const Node* node = nullptr;        // the map of the step
  const Node* parameters = nullptr;  // the map behind the kind
  const StepKind* kind = nullptr;
  // For each sweep variable, its choices: label and value.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, Node>>>> sweep;
  std::map<std::string, std::string> inputs;  // parameter -> declared name
  bool is_expanded = false;
};

bool is_variable(const Node& node) {
  return node.kind == Node::Kind::kString && node.text.size() > 1 && node.text[0] == '$';
}

std::vector<std::string> names_of(const Node& map) {
  std::vector<std::string> names;
  for (const Node& item : map.items) names.push_back(item.key);
  return names;
}

Status check_label(const Node& at, const std::string& label) {
  const bool fits =
      !label.empty() && label.size() <= 80 && std::all_of(label.begin(), label.end(), [](char c) {
        return static_cast<unsigned char>(c) > 0x20 && c != '[' && c != ']' && c != ',' && c != '=';
      });
  if (fits) return {};
  return plan_error(at, fmt::format("\"{}\" cannot name a choice of a sweep: use a map from short words "
                                    "without spaces, brackets, commas and \"=\" to the values",
                                    label));
}

Status read_sweep(const Node& sweep, Declared& out) {
  if (sweep.kind != Node::Kind::kMap || sweep.items.empty())
    return plan_error(sweep, "sweep: expected a map from variables to lists or maps of values");
  for (const Node& variable : sweep.items) {
    RETURN_IF_ERROR(check_name(variable, variable.key));
    if (variable.is_scalar() || variable.items.empty())
      return plan_error(
          variable,
          fmt::format("sweep.{}: expected a list of values, or a map from labels to them", variable.key));
    std::vector<std::pair<std::string, Node>> choices;
    for (const Node& value : variable.items) {
      const bool is_list = variable.kind == Node::Kind::kList;
      if (is_list && !value.is_scalar())
        return plan_error(
            value,
            fmt::format("sweep.{}: this value needs a label; use a map from labels to values", variable.key));
      std::string label = is_list ? value.text : value.key;
      RETURN_IF_ERROR(check_label(value, label));
      for (const auto& [other, unused] : choices)
        if (other == label)
          return plan_error(value, fmt::format("sweep.{}: {} is there twice", variable.key, label));
      choices.emplace_back(std::move(label), value);
    }
    out.sweep.emplace_back(variable.key, std::move(choices));
  }
  return {};
}

Result<Declared> read_step(const Node& node, const Node& steps) {
  RETURN_IF_ERROR(check_name(node, node.key));
  if (node.kind != Node::Kind::kMap)
    return plan_error(node, fmt::format("step {}: expected a map", node.key));
  Declared out;
  out.node = &node;
  std::vector<std::string> known = {"sweep"};
  for (const StepKind& kind : step_kinds()) known.push_back(kind.name);
  RETURN_IF_ERROR(check_keys(node, fmt::format("step {}: ", node.key), known));
  for (const Node& item : node.items) {
    if (item.key == "sweep") {
      RETURN_IF_ERROR(read_sweep(item, out));
      continue;
    }
    if (out.kind != nullptr)
      return plan_error(item, fmt::format("step {}: is {} and {}; a step has one kind", node.key,
                                          out.kind->name, item.key));
    out.kind = find_kind(item.key);
    out.parameters = &item;
  }
  if (out.kind == nullptr)
    return plan_error(node,
                      fmt::format("step {}: has no kind; say what it is, for instance source", node.key));
  if (out.kind->name == "source" && !out.sweep.empty())
    return plan_error(
        node, fmt::format("step {}: a source has no sweep; declare a source for each choice", node.key));
  if (out.parameters->kind != Node::Kind::kMap)
    return plan_error(*out.parameters,
                      fmt::format("step {}: {}: expected a map of parameters", node.key, out.kind->name));
  std::vector<std::string> parameters;
  for (const Parameter& p : out.kind->parameters) parameters.push_back(p.name);
  RETURN_IF_ERROR(
      check_keys(*out.parameters, fmt::format("step {}: {}.", node.key, out.kind->name), parameters));
  for (const Parameter& p : out.kind->parameters) {
    const Node* given = out.parameters->find(p.name);
    if (given == nullptr && p.required)
      return plan_error(*out.parameters, fmt::format("step {}: {}.{} is missing: {}", node.key,
                                                     out.kind->name, p.name, p.help));
    if (p.type != ValueType::kStep) continue;
    if (!is_variable(*given))
      return plan_error(
          *given, fmt::format("step {}: {}: expected a step of kind {}, as $NAME", node.key, p.name, p.of));
    const std::string of = given->text.substr(1);
    const Node* target = steps.find(of);
    if (target == nullptr)
      return unknown_word(*given, fmt::format("step {}: {}: no step is called", node.key, p.name), of,
                          names_of(steps));
    if (target->kind == Node::Kind::kMap && target->find(p.of) == nullptr)
      return plan_error(*given, fmt::format("step {}: {}: {} is not of kind {}", node.key, p.name, of, p.of));
    out.inputs[p.name] = of;
  }
  return out;
}

// Replaces variables of the sweep by their values, everywhere below the node.
Status substitute(Node& node, const std::map<std::string, Node>& values, const std::string& step) {
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
    return {};
  }
  for (Node& item : node.items) RETURN_IF_ERROR(substitute(item, values, step));
  return {};
}

Status check_type(const Node& node, const Parameter& p, const std::string& step) {
  const auto wrong = [&](const char* expected) {
    return plan_error(node, fmt::format("step {}: {}: expected {}, got {}", step, p.name, expected,
                                        node.is_scalar() ? "\"" + node.text + "\"" : kind_name(node.kind)));
  };
  const auto is_text = [](const Node& n) { return n.kind == Node::Kind::kString && !n.text.empty(); };
  if (p.type == ValueType::kText && !is_text(node)) return wrong("a text");
  if (p.type == ValueType::kTexts &&
      (node.kind != Node::Kind::kList || !std::all_of(node.items.begin(), node.items.end(), is_text)))
    return wrong("a list of texts");
  if (p.type == ValueType::kTexts && p.required && node.items.empty()) return wrong("at least one text");
  if (p.type == ValueType::kInteger &&
      (node.kind != Node::Kind::kInt || node.text.size() > 18 || std::stoll(node.text) < 1))
    return wrong("an integer above 0");
  if (p.type == ValueType::kSettings && node.kind != Node::Kind::kMap) return wrong("a map of options");
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
  // Expands a step after its inputs. No step needs itself: a parameter takes one kind, and kinds do not go
  // round.
  Status visit(const std::string& name) {
    Declared& step = declared_.at(name);
    if (step.is_expanded) return {};
    for (const auto& [unused, input] : step.inputs) RETURN_IF_ERROR(visit(input));
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
          if (agrees) more.push_back(std::move(next));
        }
      some = std::move(more);
    }
    std::vector<std::pair<Step, std::map<std::string, Node>>> chosen;
    for (Step& step : some) chosen.emplace_back(std::move(step), std::map<std::string, Node>{});
    for (const auto& [variable, choices] : declared.sweep) {
      std::vector<std::pair<Step, std::map<std::string, Node>>> more;
      for (const auto& [step, values] : chosen) {
        if (step.labels.contains(variable))
          return plan_error(
              *declared.node,
              fmt::format("step {}: sweep.{}: its input has a variable of this name; use another", name,
                          variable));
        for (const auto& [label, value] : choices) {
          more.emplace_back(step, values);
          more.back().first.labels[variable] = label;
          more.back().second[variable] = value;
        }
      }
      chosen = std::move(more);
    }
    for (auto& [step, values] : chosen) {
      step.name = instance_name(name, step.labels);
      RETURN_IF_ERROR(fill(declared, values, step));
      out_.push_back(std::move(step));
      if (out_.size() > kMostSteps)
        return plan_error(*declared.node,
                          fmt::format("step {}: the plan has more than {} steps", name, kMostSteps));
    }
    return {};
  }

  static Status fill(const Declared& declared, const std::map<std::string, Node>& values, Step& step) {
    step.parameters = Node::map();
    for (const Parameter& p : declared.kind->parameters) {
      if (p.type == ValueType::kStep) continue;
      const Node* given = declared.parameters->find(p.name);
      Node value;
      if (given == nullptr) {
        ASSIGN_OR_RETURN(value, config::parse_yaml("v: " + p.default_value, "default", false));
        value = value.items[0];
      } else {
        value = *given;
      }
      RETURN_IF_ERROR(substitute(value, values, step.name));
      RETURN_IF_ERROR(check_type(value, p, step.name));
      step.parameters.put(p.name, std::move(value));
    }
    return {};
  }

  static constexpr size_t kMostSteps = 10'000;
  const Node* steps_;
  std::map<std::string, Declared> declared_;
  std::vector<Step> out_;
};

}  // namespace

Error plan_error(const Node& at, const std::string& message) {
  return invalid_argument(at.where.empty() ? message : at.where + ": " + message);
}

Error unknown_word(const Node& at, const std::string& what, const std::string& word,
                   const std::vector<std::string>& known) {
  const std::string nearest = config::nearest_name(word, known);
  return plan_error(at, fmt::format("{} \"{}\"{}", what, word,
                                    nearest.empty() ? "" : fmt::format("; the nearest is \"{}\"", nearest)));
}

Status check_name(const Node& at, const std::string& name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (plain && name.size() <= 60) return {};
  return plan_error(at, fmt::format("\"{}\" is no name: use up to 60 letters, digits, _ and -", name));
}

Status check_keys(const Node& map, const std::string& what, const std::vector<std::string>& known) {
  std::set<std::string> seen;
  for (const Node& item : map.items) {
    if (std::find(known.begin(), known.end(), item.key) == known.end())
      return unknown_word(item, what + "unknown key", item.key, known);
    if (!seen.insert(item.key).second) return plan_error(item, what + item.key + " is there twice");
  }
  return {};
}

Result<std::vector<Step>> expand_steps(const Node& steps) {
  std::set<std::string> seen;
  for (const Node& item : steps.items)
    if (!seen.insert(item.key).second)
      return plan_error(item, fmt::format("step {} is there twice", item.key));
  return Expansion(steps).all();
}

}  // namespace ostro::lab
