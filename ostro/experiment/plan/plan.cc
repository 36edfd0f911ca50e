#include "ostro/experiment/plan/plan.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/config/codec.h"
#include "ostro/config/yaml.h"
#include "ostro/experiment/plan/declared.h"
#include "ostro/experiment/plan/expand.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/experiment/plan/products.h"
#include "ostro/experiment/plan/scaling_steps.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using config::Node;

Result<std::string> text_of(const Node& root, const char* key) {
  const Node* node = root.find(key);
  if (node == nullptr) return plan_error(root, fmt::format("the plan has no {}", key));
  if (node->kind != Node::Kind::kString || node->text.empty())
    return plan_error(*node, fmt::format("{}: expected a text", key));
  return node->text;
}

Result<Price> read_price(const Node& map) {
  if (map.kind != Node::Kind::kMap)
    return plan_error(map, "price: expected a map, as {machine_hour: 2.5, currency: EUR}");
  RETURN_IF_ERROR(check_keys(map, "price", {"machine_hour", "currency"}));
  Price out;
  const Node* hour = map.find("machine_hour");
  if (hour == nullptr || !config::read_value(*hour, "", &out.machine_hour).ok() || !(out.machine_hour >= 0) ||
      !std::isfinite(out.machine_hour))
    return plan_error(hour == nullptr ? map : *hour, "price.machine_hour: expected a number from 0 on");
  if (const Node* currency = map.find("currency"); currency != nullptr) {
    out.currency = currency->text;
    RETURN_IF_ERROR(check_name(*currency, out.currency));
  }
  return out;
}

// An error where a map has a key twice, at any depth.
Status check_once(const Node& node) {
  std::map<std::string_view, const Node*> first;
  for (const Node& item : node.items) {
    if (node.kind == Node::Kind::kMap) {
      const auto [known, is_new] = first.emplace(item.key, &item);
      if (!is_new)
        return plan_error(
            item, fmt::format("{} is there twice; the first is at {}", item.key, known->second->where));
    }
    RETURN_IF_ERROR(check_once(item));
  }
  return {};
}

nlohmann::json step_json(const Step& step) {
  return {{"kind", step.kind->name},
          {"version", step.kind->version},
          {"labels", step.labels},
          {"inputs", step.inputs},
          {"parameters", nlohmann::json::parse(config::canonical_json(step.parameters))}};
}

nlohmann::json hypothesis_json(const Hypothesis& h) {
  nlohmann::json out = {
      {"metric", h.metric}, {"supported", h.supported.text()}, {"refuted", h.refuted.text()}};
  if (h.predict)
    out["predict"] = {{"low", config::format_double(h.predict->low)},
                      {"high", config::format_double(h.predict->high)},
                      {"chance", config::format_double(h.predict->chance)}};
  return out;
}

}  // namespace

const std::string* checked_forecast(const Step& step) {
  const auto found = step.inputs.find("forecast");
  return step.kind->name == "train" && found != step.inputs.end() ? &found->second : nullptr;
}

std::string Price::text(double seconds) const {
  return fmt::format("{:.2f}{}{}", seconds / 3600 * machine_hour, currency.empty() ? "" : " ", currency);
}

const Step* Plan::find(const std::string& wanted) const {
  for (const Step& step : steps)
    if (step.name == wanted) return &step;
  return nullptr;
}

std::vector<const Step*> Plan::needed_by(const Step& step, std::set<std::string>& seen) const {
  std::vector<const Step*> out;
  for (const auto& [parameter, input] : step.inputs) {
    if (!seen.insert(input).second) continue;
    const Step* needed = find(input);
    OSTRO_CHECK(needed != nullptr, "step {}: its input {} is not in the plan", step.name, input);
    out.push_back(needed);
    const auto behind = needed_by(*needed, seen);
    out.insert(out.end(), behind.begin(), behind.end());
  }
  return out;
}

std::string Plan::relative(const std::string& path) const {
  const std::string top = folder.ends_with('/') ? folder : folder + "/";  // "/" is a folder
  return !folder.empty() && path.starts_with(top) ? path.substr(top.size()) : path;
}

std::string Plan::directory() const {
  return io::join_path(folder, name + (sanity ? ".sanity.lab" : ".lab"));
}

Result<Plan> read_plan(io::FileSystem& fs, const std::string& path, const config::ReadText& read) {
  RETURN_IF_ERROR(fs.stat(path));
  const std::string file = io::clean_path(path);  // without "." and "//", so that how it was typed is nowhere
  ASSIGN_OR_RETURN(const Node root, config::read_yaml_file(file, read));
  if (root.kind != Node::Kind::kMap)
    return invalid_argument(fmt::format("{}: is no plan: expected a map", path));
  RETURN_IF_ERROR(check_once(root));
  RETURN_IF_ERROR(check_keys(root, "",
                             {"lab", "question", "steps", "scaling", "hypotheses", "queries", "figures",
                              "tables", "report", "site", "price", "show_texts"}));
  Plan plan;
  plan.file = file;
  const std::string folder = io::clean_path(io::parent_path(file));
  plan.folder = folder == "." ? "" : folder;
  ASSIGN_OR_RETURN(plan.name, text_of(root, "lab"));
  RETURN_IF_ERROR(check_name(*root.find("lab"), plan.name));
  ASSIGN_OR_RETURN(plan.question, text_of(root, "question"));
  const Node* steps = root.find("steps");
  if (steps == nullptr || steps->kind != Node::Kind::kMap || steps->items.empty())
    return plan_error(steps == nullptr ? root : *steps, "steps: expected a map from names to steps");
  Node all = *steps;
  if (const Node* scaling = root.find("scaling"); scaling != nullptr)
    RETURN_IF_ERROR(add_scaling_steps(*scaling, all));
  RETURN_IF_ERROR(add_halving_steps(all));
  ASSIGN_OR_RETURN(plan.steps, expand_steps(all));
  if (const Node* hypotheses = root.find("hypotheses"); hypotheses != nullptr) {
    ASSIGN_OR_RETURN(plan.hypotheses, read_hypotheses(*hypotheses));
  }
  ASSIGN_OR_RETURN(plan.queries, read_queries(root, "queries"));
  ASSIGN_OR_RETURN(plan.figures, read_queries(root, "figures", /*figures=*/true));
  ASSIGN_OR_RETURN(plan.tables, read_queries(root, "tables"));
  RETURN_IF_ERROR(read_products(root, plan));
  if (const Node* price = root.find("price"); price != nullptr) {
    ASSIGN_OR_RETURN(plan.price, read_price(*price));
  }
  if (const Node* licences = root.find("show_texts"); licences != nullptr) {
    const bool is_list = licences->kind == Node::Kind::kList;
    for (const Node& licence : licences->items) {
      if (!is_list || licence.kind != Node::Kind::kString || licence.text.empty()) break;
      plan.show_texts.insert(licence.text);
    }
    if (!is_list || plan.show_texts.size() != licences->items.size())
      return plan_error(*licences, "show_texts: expected a list of different licences, such as [CC0-1.0]");
  }
  return plan;
}

std::string canonical_plan(const Plan& plan) {
  nlohmann::json out = {{"lab", plan.name},
                        {"question", plan.question},
                        {"queries", queries_json(plan.queries)},
                        {"figures", queries_json(plan.figures)},
                        {"tables", queries_json(plan.tables)},
                        {"report", plan.report}};
  for (const Step& step : plan.steps) out["steps"][step.name] = step_json(step);
  for (const Hypothesis& h : plan.hypotheses) out["hypotheses"][h.name] = hypothesis_json(h);
  if (!plan.show_texts.empty()) out["show_texts"] = plan.show_texts;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ostro::lab
