// ro-crate-metadata.json: a flat graph in which every file, step and run has an @id.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/publication/others/others.h"

namespace ostro::publication {
namespace {

using CrateJson = nlohmann::ordered_json;

CrateJson reference(const std::string& id) { return {{"@id", id}}; }

// An @id is a relative URI: other characters than these are written as %XX.
std::string uri(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string step_id(const std::string& step) { return "#step-" + uri(step); }
std::string content_id(const std::string& step) { return "#content-" + uri(step); }

// A step as a step of the plan, as an action that was done, and what it gave.
void add_step(const PublicationManifest& m, const lab::Step& step, CrateJson& graph, CrateJson& actions,
              CrateJson& steps) {
  const PublishedStep& published = m.steps.at(step.name);
  const std::string id = step_id(step.name);
  steps.push_back(reference(id));
  graph.push_back({{"@id", id},
                   {"@type", "HowToStep"},
                   {"name", step.name},
                   {"workExample", reference("#ostro")},
                   {"description", step.kind->help}});
  CrateJson content = {{"@id", content_id(step.name)},
                       {"@type", "CreativeWork"},
                       {"name", fmt::format("what {} gave", step.name)},
                       {"identifier", "sha256:" + published.content}};
  if (!published.licence.empty()) content["license"] = published.licence;
  if (!published.bundle.empty())
    content["hasPart"] = CrateJson::array({reference(uri(published.bundle) + "/")});
  graph.push_back(content);
  CrateJson inputs = CrateJson::array();
  for (const auto& [parameter, input] : step.inputs)
    if (m.steps.contains(input)) inputs.push_back(reference(content_id(input)));  // others are left out
  const std::string action = "#action-" + uri(step.name);
  graph.push_back({{"@id", action},
                   {"@type", "CreateAction"},
                   {"name", step.name},
                   {"identifier", "sha256:" + published.fingerprint},
                   {"instrument", reference("#ostro")},
                   {"object", inputs},
                   {"result", CrateJson::array({reference(content_id(step.name))})}});
  actions.push_back(reference(action));
  graph.push_back({{"@id", "#control-" + uri(step.name)},
                   {"@type", "ControlAction"},
                   {"instrument", reference(id)},
                   {"object", reference(action)}});
}

}  // namespace

std::string research_crate(const PublicationManifest& m, const lab::LabState& state,
                           const std::string& licence) {
  CrateJson graph = CrateJson::array(), files = CrateJson::array(), actions = CrateJson::array(),
            steps = CrateJson::array();
  for (const auto& [path, sum] : m.files) {
    const std::string id = uri(path);
    files.push_back(reference(id));
    CrateJson file = {{"@id", id},
                      {"@type", "File"},
                      {"name", path},
                      {"contentSize", std::to_string(sum.bytes)},
                      {"sha256", sum.sha256}};
    if (path == m.plan)
      file["@type"] = CrateJson::array({"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"});
    graph.push_back(file);
  }
  for (const lab::StepState& s : state.kept()) {
    const PublishedStep& step = m.steps.at(s.step->name);
    add_step(m, *s.step, graph, actions, steps);
    if (step.bundle.empty()) continue;
    files.push_back(reference(uri(step.bundle) + "/"));
    graph.push_back({{"@id", uri(step.bundle) + "/"},
                     {"@type", "Dataset"},
                     {"name", fmt::format("the model of {} with its record", s.step->name)},
                     {"identifier", "sha256:" + step.content}});
  }
  for (CrateJson& node : graph)
    if (node["@id"] == uri(m.plan)) {
      node["programmingLanguage"] = reference("#plan-language");
      node["step"] = steps;
      node["hasPart"] = CrateJson::array({reference("#ostro")});
    }
  graph.push_back(
      {{"@id", "#plan-language"}, {"@type", "ComputerLanguage"}, {"name", "plan of an Ostro lab"}});
  const auto made_by = CrateJson::parse(m.made_by, nullptr, /*allow_exceptions=*/false);
  graph.push_back({{"@id", "#ostro"},
                   {"@type", "SoftwareApplication"},
                   {"name", "Ostro"},
                   {"softwareVersion", made_by.value("version", "")},
                   {"identifier", made_by.value("source_commit", "")}});
  graph.push_back({{"@id", "#run"},
                   {"@type", "CreateAction"},
                   {"name", "the plan, done"},
                   {"identifier", "sha256:" + m.lab_hash},
                   {"instrument", reference(uri(m.plan))},
                   {"result", CrateJson::array({reference(kRecordFile)})}});
  graph.push_back({{"@id", "#organize"},
                   {"@type", "OrganizeAction"},
                   {"name", "ostro lab run"},
                   {"instrument", reference("#ostro")},
                   {"object",
                    [&] {
                      CrateJson all = CrateJson::array();
                      for (const lab::StepState& s : state.kept())
                        all.push_back(reference("#control-" + uri(s.step->name)));
                      return all;
                    }()},
                   {"result", reference("#run")}});
  actions.push_back(reference("#run"));
  CrateJson root = {
      {"@id", "./"},
      {"@type", "Dataset"},
      {"name", m.lab},
      {"description", m.question},
      {"conformsTo", CrateJson::array({reference("https://w3id.org/ro/wfrun/process/0.5"),
                                       reference("https://w3id.org/ro/wfrun/workflow/0.5"),
                                       reference("https://w3id.org/ro/wfrun/provenance/0.5"),
                                       reference("https://w3id.org/workflowhub/workflow-ro-crate/1.0")})},
      {"identifier", "sha256:" + m.lab_hash},
      {"mainEntity", reference(uri(m.plan))},
      {"mentions", actions},
      {"hasPart", files}};
  if (!licence.empty()) root["license"] = licence;
  CrateJson all = CrateJson::array({{{"@id", "ro-crate-metadata.json"},
                                     {"@type", "CreativeWork"},
                                     {"conformsTo", reference("https://w3id.org/ro/crate/1.1")},
                                     {"about", reference("./")}},
                                    root});
  for (const CrateJson& node : graph) all.push_back(node);
  return CrateJson({{"@context", CrateJson::array({"https://w3id.org/ro/crate/1.1/context",
                                                   "https://w3id.org/ro/terms/workflow-run/context"})},
                    {"@graph", all}})
             .dump(1) +
         "\n";
}

}  // namespace ostro::publication
