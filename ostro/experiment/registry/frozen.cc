#include "ostro/experiment/registry/frozen.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/chain/canonical.h"
#include "ostro/config/config.h"
#include "ostro/experiment/journal/line_chain.h"
#include "ostro/experiment/plan/evaluation_files.h"
#include "ostro/experiment/registry/uses.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using nlohmann::json;

constexpr int64_t kFrozenFormat = 1;

// What all hypotheses stand on.
constexpr const char* kOfAll[] = {"seeds", "steps", "configs", "files", "sources"};

// How many seeds of the registration a family of steps has.
void count_seeds(const config::Node& node, int64_t& most) {
  if (const auto number = marked_seed(node)) most = std::max(most, *number);
  for (const config::Node& item : node.items) count_seeds(item, most);
}

Status add_files(io::FileSystem& fs, const Plan& plan, const Step& step, json& out) {
  if (step.kind->name == "train") {
    const std::string file = step.parameters.find("config")->text;
    if (out["configs"].contains(file)) return {};
    config::Mistakes mistakes;
    ASSIGN_OR_RETURN(const config::Node tree,
                     config::load_tree(io::join_path(plan.folder, file), {}, &mistakes));
    RETURN_IF_ERROR(mistakes.status());
    out["configs"][file] = json::parse(config::canonical_json(tree));
  }
  if (step.kind->name == "filter") {
    ASSIGN_OR_RETURN(const auto hashes, evaluation_hashes(fs, plan, step));
    for (const auto& [file, hash] : hashes) out["files"][file] = hash;
  }
  if (step.kind->name == kCommandKind)
    for (const config::Node& file : step.parameters.find("files")->items) {
      ASSIGN_OR_RETURN(out["files"][file.text], io::file_sha256(fs, io::join_path(plan.folder, file.text)));
    }
  return {};
}

// Differences of the items of two objects: "WHAT NAME: how".
void add_changes(const char* what, const json& before, const json& after, std::vector<std::string>& out) {
  std::set<std::string> names;
  for (const json* side : {&before, &after})
    for (const auto& [name, unused] : side->items()) names.insert(name);
  for (const std::string& name : names) {
    const bool was = before.contains(name), is = after.contains(name);
    if (was && is && before[name] == after[name]) continue;
    std::string how = !was ? "is new" : "is gone";
    if (was && is) {
      const auto all =
          chain::object_differences(line_text({{name, before[name]}}), line_text({{name, after[name]}}));
      how = all.empty() ? "is another one"
                        : all[0] + (all.size() > 1 ? fmt::format(", and {} more", all.size() - 1) : "");
    }
    out.push_back(fmt::format("{} {}: {}", what, name, how));
  }
}

// A member of each hypothesis that both sides have.
json members(const json& hypotheses, const json& other, std::initializer_list<const char*> keys) {
  json out = json::object();
  for (const auto& [name, hypothesis] : hypotheses.items())
    if (other.contains(name))
      for (const char* key : keys)
        if (hypothesis.contains(key)) out[name][key] = hypothesis[key];
  return out;
}

}  // namespace

Result<std::string> frozen_text(io::FileSystem& fs, const Plan& plan,
                                const std::map<std::string, std::string>& sources) {
  ASSIGN_OR_RETURN(const auto uses, used_steps(plan));
  const json all = json::parse(canonical_plan(plan));
  json out = {{"format", kFrozenFormat}, {"lab", plan.name},
              {"steps", all["steps"]},   {"configs", json::object()},
              {"files", json::object()}, {"seeds", json::object()},
              {"sources", sources},      {"hypotheses", json::object()}};
  if (all.contains("hypotheses")) out["hypotheses"] = all["hypotheses"];
  for (const auto& [hypothesis, steps] : uses) out["hypotheses"][hypothesis]["steps"] = steps;
  std::map<std::string, int64_t> seeds;
  for (const Step& step : plan.steps) {
    RETURN_IF_ERROR(add_files(fs, plan, step, out));
    if (has_seeds(step.parameters)) count_seeds(step.parameters, seeds[step.family]);
  }
  for (const auto& [family, most] : seeds) out["seeds"][family] = most;
  return line_text(out);
}

bool is_frozen_text(const std::string& text) {
  const json out = json::parse(text, nullptr, false);
  if (!out.is_object() || out.value("format", json()) != kFrozenFormat) return false;
  for (const char* key : {"steps", "hypotheses", "configs", "files", "seeds", "sources"})
    if (!out.contains(key) || !out[key].is_object()) return false;
  const json &steps = out["steps"], &hypotheses = out["hypotheses"], &sources = out["sources"];
  const auto is_text = [](const json& value) { return value.is_string(); };
  return std::all_of(steps.begin(), steps.end(),
                     [&](const json& step) {
                       return step.is_object() && step.contains("parameters") &&
                              step["parameters"].is_object() && step.contains("inputs") &&
                              step["inputs"].is_object() &&
                              is_text(step["inputs"].value("forecast", json("")));
                     }) &&
         std::all_of(hypotheses.begin(), hypotheses.end(),
                     [&](const json& h) {
                       return h.is_object() && h.contains("steps") && h["steps"].is_array() &&
                              std::all_of(h["steps"].begin(), h["steps"].end(), is_text);
                     }) &&
         std::all_of(sources.begin(), sources.end(), is_text);
}

std::map<std::string, std::string> frozen_queries(const Plan& plan) {
  std::map<std::string, std::string> out;
  for (const Query& query : plan.queries) out[query.name] = query.sql;
  return out;
}

std::vector<std::string> frozen_changes(const std::string& before, const std::string& after, bool sources) {
  const json a = json::parse(before), b = json::parse(after);
  std::vector<std::string> out;
  const json &was = a["hypotheses"], &is = b["hypotheses"];
  add_changes("metric", members(was, is, {"metric"}), members(is, was, {"metric"}), out);
  add_changes("rule", members(was, is, {"supported", "refuted"}), members(is, was, {"supported", "refuted"}),
              out);
  add_changes("prediction", members(was, is, {"predict"}), members(is, was, {"predict"}), out);
  json only_was = json::object(), only_is = json::object();
  for (const auto& [name, hypothesis] : was.items())
    if (!is.contains(name)) only_was[name] = hypothesis;
  for (const auto& [name, hypothesis] : is.items())
    if (!was.contains(name)) only_is[name] = hypothesis;
  add_changes("hypothesis", only_was, only_is, out);
  add_changes("seeds", a["seeds"], b["seeds"], out);
  add_changes("step", a["steps"], b["steps"], out);
  add_changes("config", a["configs"], b["configs"], out);
  add_changes("file", a["files"], b["files"], out);
  if (sources) add_changes("source", a["sources"], b["sources"], out);
  return out;
}

bool is_other_experiment(const std::string& before, const std::string& after) {
  const json a = json::parse(before), b = json::parse(after);
  return std::any_of(std::begin(kOfAll), std::end(kOfAll), [&](const char* key) { return a[key] != b[key]; });
}

std::map<std::string, FrozenHypothesis> frozen_hypotheses(const std::string& text) {
  std::map<std::string, FrozenHypothesis> out;
  const json frozen = json::parse(text);
  for (const auto& [name, hypothesis] : frozen["hypotheses"].items())
    out[name] = {line_text(hypothesis), hypothesis["steps"].get<std::vector<std::string>>()};
  return out;
}

std::map<std::string, std::string> frozen_sources(const std::string& text) {
  return json::parse(text)["sources"].get<std::map<std::string, std::string>>();
}

std::map<std::string, FrozenStep> frozen_steps(const std::string& text) {
  const json frozen = json::parse(text);
  const auto number_of = [](const json& value) {
    return value.is_string() ? marked_seed(config::Node::string(value.get<std::string>())) : std::nullopt;
  };
  std::map<std::string, FrozenStep> out;
  for (const auto& [name, step] : frozen["steps"].items()) {
    FrozenStep& found = out[name];
    const json& parameters = step["parameters"];
    if (step.value("kind", "") == "train" && step["inputs"].contains("forecast"))
      found.forecast = step["inputs"]["forecast"];
    if (parameters.contains("set"))
      for (const auto& [path, value] : parameters["set"].items())
        if (const auto number = number_of(value)) found.seeds[path] = *number;
    if (parameters.contains("program"))
      for (size_t i = 0; i < parameters["program"].size(); ++i)
        if (const auto number = number_of(parameters["program"][i])) found.words[i] = *number;
  }
  for (const auto& [name, hypothesis] : frozen["hypotheses"].items())
    for (const std::string step : hypothesis["steps"]) out[step].used = true;
  return out;
}

std::string wrong_seed(const FrozenStep& step, const std::string& recipe, const Seeds& seeds) {
  const json made = json::parse(recipe, nullptr, false);
  if (!made.is_object() || !made.contains("parameters") || !made["parameters"].is_object())
    return "its recipe has no parameters";
  const auto differs = [&](const std::string& what, const std::string& is, int64_t wanted) {
    return fmt::format("the seed {} is {}, and {} follows from the registration", what, is, wanted);
  };
  if (!step.seeds.empty()) {
    std::map<std::string, std::string> values;
    const json config = made["parameters"].value("config", json::object());
    for (const auto& [path, value] : chain::values_by_path(line_text(config))) values[path] = value;
    for (const auto& [path, number] : step.seeds) {
      const std::string is = values.contains(path) ? values[path] : "0";
      if (is != std::to_string(seeds.of(number))) return differs(path, is, seeds.of(number));
    }
  }
  const json words = made["parameters"].value("program", json::array());
  for (const auto& [i, number] : step.words) {
    const std::string is = i < words.size() ? words[i].dump() : "absent";
    const int64_t wanted = seeds.of(number);
    if (is != std::to_string(wanted) && is != fmt::format("\"{}\"", wanted))
      return differs(fmt::format("(word {} of the program)", i + 1), is, wanted);
  }
  return "";
}

}  // namespace ostro::lab
