#include "ostro/publication/check/published_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/base/sha256.h"
#include "ostro/config/yaml.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/halving.h"

namespace ostro::publication {
namespace {

// The journal's last line of a fingerprint that gave this content.
const lab::DoneEntry* entry_of(const lab::Journal& journal, const PublishedStep& step) {
  for (auto it = journal.done().rbegin(); it != journal.done().rend(); ++it)
    if (it->fingerprint == step.fingerprint && it->content == step.content) return &*it;
  return nullptr;
}

// How the files of a source differ from those that its recipe names; empty: they do not.
std::string source_fault(const PublishedStep& step, const nlohmann::json& recipe) {
  if (recipe["parameters"].value("licence", "") != step.licence) return "has another licence in the journal";
  auto inputs = nlohmann::json::object(), order = nlohmann::json::array();
  for (const PublishedFile& file : step.sources) {
    inputs[file.path] = file.sha256;
    order.push_back({file.path, file.sha256});
  }
  if (recipe["inputs"] != inputs) return "has other files in the journal";
  return sha256_hex(order.dump()) == step.content ? "" : "has its files in another order in the journal";
}

// How a step differs from what the journal says; empty: it does not. The inputs of what was made are what the
// plan's other steps gave.
std::string step_fault(const lab::Step& step, const PublicationManifest& manifest,
                       const lab::DoneEntry* entry) {
  const PublishedStep& published = manifest.steps.at(step.name);
  if (published.kind != step.kind->name)
    return fmt::format("is of kind {} in {} and of kind {} in the plan", published.kind, kManifestFile,
                       step.kind->name);
  if (entry == nullptr) return "the journal has no line with this fingerprint and content";
  if (sha256_hex(entry->recipe) != entry->fingerprint)
    return "its recipe in the journal has another fingerprint";
  const auto recipe = nlohmann::json::parse(entry->recipe, nullptr, /*allow_exceptions=*/false);
  if (!recipe.is_object() || recipe.value("kind", "") != step.kind->name || !recipe["inputs"].is_object() ||
      !recipe["parameters"].is_object())
    return "its recipe in the journal is of another form";
  if (step.kind->name == "source") return source_fault(published, recipe);
  for (const auto& [parameter, content] : recipe["inputs"].items()) {
    const auto input = step.inputs.find(parameter);
    if (input == step.inputs.end()) return fmt::format("the plan has no input {} of it", parameter);
    const auto other = manifest.steps.find(input->second);
    if (other == manifest.steps.end() || content != other->second.content)
      return fmt::format("was not made of what {} gave", input->second);
  }
  return "";
}

// A part of a halved training ends where the rungs say.
Status check_end(io::FileSystem& fs, const PublishedLab& lab, const lab::Step& step,
                 const lab::DoneEntry& entry, std::vector<std::string>& faults) {
  if (step.kind->name != "train") return {};
  ASSIGN_OR_RETURN(const auto stopped, lab::stopped_at(fs, lab.plan, lab.state.made, step));
  const int64_t end = stopped ? stopped->step : lab::rung_step(lab.plan, step).value_or(0);
  const auto recipe = nlohmann::json::parse(entry.recipe);
  const nlohmann::json& parameters = recipe["parameters"];
  const nlohmann::json there = parameters.contains(lab::kUntil) ? parameters[lab::kUntil] : nlohmann::json(0);
  if (!there.is_number_integer() || there != end)
    faults.push_back(
        fmt::format("step {}: ends after step {} in the journal, and the rungs say {} (0: its last)",
                    step.name, there.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), end));
  return {};
}

// Reads the plan's files, which `!include` leads to: those that the publication lists, and no other file of
// this machine.
config::ReadText listed_texts(io::FileSystem& fs, const std::string& directory,
                              const PublicationManifest& manifest) {
  return [&fs, &manifest,
          top = io::absolute_path(directory) + "/"](const std::string& path) -> Result<std::string> {
    constexpr int64_t kMostBytes = int64_t{1} << 24;
    const std::string place = io::absolute_path(path);
    if (!place.starts_with(top) || !manifest.files.contains(place.substr(top.size())))
      return corrupt(
          fmt::format("{} is none of the files that {} lists, so it is not opened", path, kManifestFile));
    return fs.read_file(path, kMostBytes);
  };
}

}  // namespace

Result<PublishedLab> open_lab(io::FileSystem& fs, const std::string& directory,
                              const PublicationManifest& manifest, const lab::Journal& journal,
                              std::vector<std::string>& faults) {
  PublishedLab out;
  const std::string file = io::join_path(directory, manifest.plan);
  ASSIGN_OR_RETURN(out.plan, lab::read_plan(fs, file, listed_texts(fs, directory, manifest)));
  if (out.plan.name != manifest.lab || out.plan.question != manifest.question)
    faults.push_back(fmt::format("{} has another name or question than {}", file, kManifestFile));
  if (sha256_hex(canonical_plan(out.plan)) != journal.plan_hash())
    faults.push_back(fmt::format("{} is not the plan that the journal names last", file));
  std::set<std::string> names, left;
  for (const lab::Step& step : out.plan.steps) {
    names.insert(step.name);
    const auto found = manifest.steps.find(step.name);
    // Of an input that is neither there nor left out it has been said what is wrong.
    const bool is_decided = std::all_of(step.inputs.begin(), step.inputs.end(), [&](const auto& input) {
      return out.state.made.contains(input.second) || left.contains(input.second);
    });
    if (!is_decided) continue;
    ASSIGN_OR_RETURN(const std::string why, lab::left_out(fs, out.plan, out.state.made, left, step));
    if (!why.empty() && found == manifest.steps.end()) {
      left.insert(step.name);
      out.state.steps.push_back({.step = &step, .action = lab::Action::kLeft, .reason = why});
      continue;
    }
    if (!why.empty()) faults.push_back(fmt::format("step {} is there, and {}", step.name, why));
    if (found == manifest.steps.end()) {
      faults.push_back(fmt::format("step {} of the plan is not in {}", step.name, kManifestFile));
      continue;
    }
    const PublishedStep& published = found->second;
    const lab::DoneEntry* entry = entry_of(journal, published);
    if (const std::string fault = step_fault(step, manifest, entry); !fault.empty()) {
      faults.push_back(fmt::format("step {}: {}", step.name, fault));
      continue;
    }
    RETURN_IF_ERROR(check_end(fs, out, step, *entry, faults));
    out.state.steps.push_back({.step = &step,
                               .action = lab::Action::kSkip,
                               .recipe = entry->recipe,
                               .fingerprint = published.fingerprint,
                               .content = published.content,
                               .manifest = entry->manifest});
    lab::Made& made = out.state.made[step.name];
    made.fingerprint = published.fingerprint, made.content = published.content;
    if (step.kind->name != "source")
      made.folder = lab::output_folder(out.plan.directory(), published.fingerprint);
    for (const PublishedFile& source : published.sources) {
      made.files.push_back({.path = io::join_path(out.plan.folder, source.path), .size = source.bytes});
      made.pinned.push_back(source.sha256);
    }
  }
  for (const auto& [name, unused] : manifest.steps)
    if (!names.contains(name))
      faults.push_back(fmt::format("step {} of {} is not in the plan", name, kManifestFile));
  if (faults.empty() && out.state.hash() != manifest.lab_hash)
    faults.push_back(fmt::format("the lab hash of these steps is {}, and {} has {}", out.state.hash(),
                                 kManifestFile, manifest.lab_hash));
  return out;
}

Result<std::vector<std::string>> output_faults(io::FileSystem& fs, const PublishedLab& lab,
                                               const PublicationManifest& manifest, int64_t& left_out) {
  std::vector<std::string> faults;
  for (const lab::StepState& s : lab.state.kept()) {
    const std::string& folder = lab.state.made.at(s.step->name).folder;
    if (folder.empty()) continue;
    const std::string list = lab::manifest_path(lab.plan.directory(), s.fingerprint);
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(list));
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (sha256_hex(text) != s.manifest || !json.is_object() || !json["files"].is_object()) {
      faults.push_back(fmt::format("{} is not the list that the journal has the hash of", list));
      continue;
    }
    const std::string below = lab.plan.relative(folder) + "/";
    int64_t listed = 0;
    for (auto file = manifest.files.lower_bound(below);
         file != manifest.files.end() && file->first.starts_with(below); ++file) {
      const auto made = json["files"].find(file->first.substr(below.size()));
      if (made == json["files"].end()) continue;  // the sessions of a run
      ++listed;
      if (const std::string& hash = file->second.sha256; *made != hash)
        faults.push_back(fmt::format("{}/{} is not what step {} made: SHA-256 {} here, {} in its list",
                                     folder, file->first.substr(below.size()), s.step->name, hash,
                                     made->dump()));
    }
    left_out += static_cast<int64_t>(json["files"].size()) - listed;
  }
  return faults;
}

}  // namespace ostro::publication
