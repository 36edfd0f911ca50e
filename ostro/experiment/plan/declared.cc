#include "ostro/experiment/plan/declared.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/config/options.h"
#include "ostro/experiment/plan/seeds.h"

namespace ostro::lab {

using config::Node;

namespace {

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
    std::vector<std::pair<std::string, Node>> choices;
    if (const auto seeds = registration_seeds(variable.text); seeds && variable.is_scalar()) {
      if (*seeds > kMostSeeds)
        return plan_error(
            variable, fmt::format("sweep.{}: {} seeds; use at most {}", variable.key, *seeds, kMostSeeds));
      for (int64_t i = 1; i <= *seeds; ++i) choices.emplace_back(std::to_string(i), seed_marker(i));
      out.sweep.emplace_back(variable.key, std::move(choices));
      continue;
    }
    if (variable.is_scalar() || variable.items.empty())
      return plan_error(variable,
                        fmt::format("sweep.{}: expected a list of values, a map from labels to them, or "
                                    "\"registration x N\" for the seeds of a registration",
                                    variable.key));
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

// Takes the step that a parameter, or an item of it, names.
Status read_input(const Node& given, const std::string& step, const Parameter& p, const std::string& name,
                  const Node& steps, Declared& out) {
  if (!is_variable(given))
    return plan_error(given, fmt::format("step {}: {}: expected a step{}, as $NAME", step, name,
                                         p.of.empty() ? "" : " of kind " + kinds_that_fit(p)));
  const std::string of = given.text.substr(1);
  const Node* target = steps.find(of);
  if (target == nullptr)
    return unknown_word(given, fmt::format("step {}: {}: no step is called", step, name), of,
                        names_of(steps));
  bool fits = target->kind != Node::Kind::kMap;
  for (const StepKind& kind : step_kinds()) fits |= target->find(kind.name) != nullptr && kind.fits(p);
  if (!fits)
    return plan_error(given,
                      fmt::format("step {}: {}: {} is not of kind {}", step, name, of, kinds_that_fit(p)));
  out.inputs[name] = of;
  return {};
}

// Takes the step of a parameter, or the steps of a map as PARAMETER.NAME.
Status read_parts(const Node& given, const std::string& step, const Parameter& p, const Node& steps,
                  Declared& out) {
  if (given.is_scalar()) return read_input(given, step, p, p.name, steps, out);
  if (given.kind != Node::Kind::kMap || given.items.empty())
    return plan_error(given,
                      fmt::format("step {}: {}: expected $NAME, or a map from names to $NAME", step, p.name));
  for (const Node& item : given.items) {
    RETURN_IF_ERROR(check_name(item, item.key));
    RETURN_IF_ERROR(read_input(item, step, p, p.name + "." + item.key, steps, out));
  }
  return {};
}

// Takes the steps that phases add to the data of a training.
Status read_added(const Node& phases, const std::string& step, const Parameter& data, const Node& steps,
                  Declared& out) {
  if (phases.kind != Node::Kind::kList || phases.items.empty())
    return plan_error(phases, fmt::format("step {}: phases: expected a list of phases", step));
  for (const Node& phase : phases.items) {
    const Node* added = phase.kind == Node::Kind::kMap ? phase.find(data.name) : nullptr;
    if (added == nullptr) continue;
    if (added->kind != Node::Kind::kMap || out.inputs.contains(data.name))
      return plan_error(*added,
                        fmt::format("step {}: phases: {}: expected a map from names to $NAME, which is added "
                                    "to the map that the training has; give its data names, too",
                                    step, data.name));
    for (const Node& item : added->items)
      if (out.inputs.contains(data.name + "." + item.key))
        return plan_error(item,
                          fmt::format("step {}: phases: {}: {} is there already", step, data.name, item.key));
    RETURN_IF_ERROR(read_parts(*added, step, data, steps, out));
  }
  return {};
}

// Takes the steps whose names are in a list.
Status read_families(const Node& given, const std::string& step, const Parameter& p, const Node& steps,
                     Declared& out) {
  if (given.kind != Node::Kind::kList || given.items.empty())
    return plan_error(given, fmt::format("step {}: {}: expected a list of steps, as [$NAME]", step, p.name));
  for (const Node& item : given.items) {
    Declared one;
    RETURN_IF_ERROR(read_input(item, step, p, p.name, steps, one));
    out.families.push_back(one.inputs.at(p.name));
  }
  return {};
}

}  // namespace

bool is_variable(const Node& node) {
  return node.kind == Node::Kind::kString && node.text.size() > 1 && node.text[0] == '$';
}

Result<Declared> read_step(const Node& node, const Node& steps) {
  RETURN_IF_ERROR(check_name(node, node.key));
  if (node.kind != Node::Kind::kMap)
    return plan_error(node, fmt::format("step {}: expected a map", node.key));
  Declared out;
  out.node = &node;
  std::vector<std::string> known = {"sweep", "halving"};  // add_halving_steps() takes the second
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
      check_keys(*out.parameters, fmt::format("step {}: {}: ", node.key, out.kind->name), parameters));
  for (const Parameter& p : out.kind->parameters) {
    const Node* given = out.parameters->find(p.name);
    if (given == nullptr && p.required)
      return plan_error(*out.parameters, fmt::format("step {}: {}.{} is missing: {}", node.key,
                                                     out.kind->name, p.name, p.help));
    if (p.type == ValueType::kStep && given != nullptr)
      RETURN_IF_ERROR(read_input(*given, node.key, p, p.name, steps, out));
    if (p.type == ValueType::kFamilies) RETURN_IF_ERROR(read_families(*given, node.key, p, steps, out));
    if (p.type == ValueType::kParts && given != nullptr)
      RETURN_IF_ERROR(read_parts(*given, node.key, p, steps, out));
    if (p.type == ValueType::kPhases && given != nullptr)
      RETURN_IF_ERROR(read_added(*given, node.key, *out.kind->find("data"), steps, out));
    if (p.type != ValueType::kSteps || given == nullptr) continue;
    if (given->kind != Node::Kind::kMap)
      return plan_error(*given,
                        fmt::format("step {}: {}: expected a map from names to $NAME", node.key, p.name));
    for (const Node& item : given->items) {
      RETURN_IF_ERROR(check_name(item, item.key));
      RETURN_IF_ERROR(read_input(item, node.key, p, item.key, steps, out));
    }
  }
  return out;
}

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
  for (const Node& item : map.items)
    if (std::find(known.begin(), known.end(), item.key) == known.end())
      return unknown_word(item, what + "unknown key", item.key, known);
  return {};
}

}  // namespace ostro::lab
