#include "ostro/site/lab_facts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "ostro/experiment/plan/halving.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/report/html_page.h"

namespace ostro::site {

std::string isolated(const std::string& text) { return "<bdi>" + lab::shown_text(text) + "</bdi>"; }

const RunFacts* LabFacts::find(const std::string& step) const {
  for (const RunFacts& run : runs)
    if (run.name == step) return &run;
  return nullptr;
}

std::string LabFacts::step_html(const std::string& name) const {
  const RunFacts* run = find(name);
  const std::string text = isolated(name);
  return run == nullptr ? text : fmt::format("<a href=\"{}.html\">{}</a>", run->id, text);
}

namespace {

// Without the folder, which ends with "/", wherever a path begins with it.
std::string without(const std::string& folder, const std::string& text) {
  const auto is_of_path = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '/';
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if ((i == 0 || !is_of_path(text[i - 1])) && text.compare(i, folder.size(), folder) == 0) {
      i += folder.size();
      continue;
    }
    out += text[i++];
  }
  return out;
}

// What audits of this lab did again of a run. Of one that is halved an audit of each part does the steps
// since the rung before it.
std::string audited_text(const lab::Plan& plan, const lab::LabState& state,
                         const std::set<std::string>& audited, const lab::Step& step) {
  const lab::Step* part = &step;
  while (part->kind->name == "train" && part->inputs.contains(lab::kBegun)) {
    part = plan.find(part->inputs.at(lab::kBegun));
    const auto made = state.made.find(part->name);
    if (made == state.made.end() || !audited.contains(made->second.fingerprint))
      return fmt::format("the steps behind step {}, by an audit of this lab",
                         lab::rung_step(plan, *part).value_or(0));
  }
  return "all of it, by an audit of this lab";
}

}  // namespace

std::string LabFacts::without_folder(const std::string& text) const {
  const auto as_folder = [](std::string path) { return path.ends_with('/') ? path : path + "/"; };
  // Errors name files by either.
  const std::string out =
      without(as_folder(io::absolute_path(plan.folder.empty() ? "." : plan.folder)), text);
  return plan.folder.empty() ? out : without(as_folder(plan.folder), out);
}

Result<std::map<std::string, std::string>> LabFacts::by_name(const std::string& sql) const {
  ASSIGN_OR_RETURN(const lab::Rows rows, record.select(sql));
  std::map<std::string, std::string> out;
  for (const auto& row : rows.rows)
    out.insert_or_assign(lab::value_text(row.at(0)), lab::value_text(row.at(1)));
  return out;
}

LabFacts lab_facts(const lab::Plan& plan, const lab::LabState& state, const lab::Database& record,
                   const lab::Journal& journal, bool measured) {
  LabFacts out{plan, state, record, measured, {}};
  std::map<std::string, std::string> verified;  // by fingerprint; "": by an audit
  std::set<std::string> audited;                // fingerprints
  for (const lab::HashedLine& line : journal.lines()) {
    const auto entry = nlohmann::json::parse(line.entry);
    if (entry["kind"] == "audit") {
      verified[entry["fingerprint"]] = "";
      audited.insert(entry["fingerprint"]);
    }
    if (entry["kind"] == "adopted") verified[entry["fingerprint"]] = entry["verified"];
  }
  for (const lab::StepState& s : state.steps) {
    if (!s.step->kind->makes_run() || s.action != lab::Action::kSkip) continue;
    if (lab::is_part_of_halving(plan, *s.step)) continue;  // the record has the whole run
    const auto found = verified.find(s.fingerprint);
    std::string again = found == verified.end() ? "" : found->second;
    if (found != verified.end() && again.empty()) again = audited_text(plan, state, audited, *s.step);
    out.runs.push_back(
        {s.step->name, fmt::format("run-{}", out.runs.size() + 1), "", std::move(again), {}, {}});
  }
  return out;
}

}  // namespace ostro::site
