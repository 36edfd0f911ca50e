#include "ostro/publication/publish/copy_lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/bundle/parts/file_sums.h"
#include "ostro/bundle/publish/copy_record.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/config_file.h"
#include "ostro/config/config.h"
#include "ostro/config/yaml.h"
#include "ostro/experiment/journal/journal.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/journal/pins.h"
#include "ostro/experiment/registry/registry.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/run_data.h"
#include "ostro/provenance/provenance.h"

namespace ostro::publication {
namespace {

// The files that a tree was read from: every value has its place, "FILE:LINE".
void add_files_of(const config::Node& node, std::set<std::string>& out) {
  if (const size_t colon = node.where.rfind(':'); colon != std::string::npos && node.where[0] != '-')
    out.insert(node.where.substr(0, colon));
  for (const config::Node& item : node.items) add_files_of(item, out);
}

Status copy_to(io::FileSystem& fs, const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(fs.make_dirs(io::parent_path(to)));
  return bundle::copy_file(fs, from, to, [](int64_t) {});
}

// The files of a plan, as paths that this process can open.
Result<std::set<std::string>> files_of_plan(io::FileSystem& fs, const lab::Plan& plan) {
  std::set<std::string> out = {plan.file};
  ASSIGN_OR_RETURN(const config::Node root, config::read_yaml_file(plan.file));
  add_files_of(root, out);
  const auto add = [&](const std::string& path) { out.insert(io::join_path(plan.folder, path)); };
  for (const lab::Step& step : plan.steps) {
    if (const config::Node* config = step.parameters.find("config"); config != nullptr) {
      add(config->text);
      ASSIGN_OR_RETURN(const config::Node tree,
                       config::read_yaml_file(io::join_path(plan.folder, config->text)));
      add_files_of(tree, out);
    }
    if (step.kind->name == lab::kCommandKind)
      for (const config::Node& file : step.parameters.find("files")->items) add(file.text);
  }
  if (!plan.report.empty()) add(plan.report);
  const std::string pins = io::join_path(plan.folder, lab::kPinsFile);
  ASSIGN_OR_RETURN(const bool has_pins, fs.exists(pins));
  if (has_pins) out.insert(pins);
  return out;
}

bool is_ledger(const std::string& file) {
  return file.find('/') == std::string::npos && file.ends_with(".json");
}

// Whether a file of a step's output is published. Models are in the bundles of their runs.
bool is_taken(const lab::Plan& plan, const lab::Step& step, const std::string& file) {
  if (step.kind->name == "extract") return false;
  if (file == lab::kTextsFile && step.kind->name == "sample") return lab::texts_may_be_shown(plan, step);
  if (step.kind->gives_model()) return io::base_name(file) == provenance::kProvenanceFile;
  return step.kind->name != "tokens" || is_ledger(file);
}

// The record of a run, without its states. Its configuration must be published as it is, because the output's
// list has its hash: that of a run which an earlier version adopted may have words that are left out.
Status copy_run(const Context& context, const std::string& run, const std::string& place) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(run, chain::kChainFile)));
  RETURN_IF_ERROR(bundle::copy_record(fs, run, chain, {{}, /*has_moments=*/false}, place, context.progress));
  const std::string config = io::join_path(run, chain::kConfigFile);
  ASSIGN_OR_RETURN(const std::string made, fs.read_file(config));
  ASSIGN_OR_RETURN(const std::string shown, fs.read_file(io::join_path(place, chain::kConfigFile)));
  if (made == shown) return {};
  return invalid_argument(
      fmt::format("{}: has words of trainer.alert_command or trainer.notice_command, which are not "
                  "published, and the journal has the hash of the file with them: remove the folder {} and "
                  "adopt the run again",
                  config, run));
}

}  // namespace

Status copy_plan(io::FileSystem& fs, const lab::Plan& plan, const std::string& place,
                 std::vector<std::string>& remarks) {
  ASSIGN_OR_RETURN(const std::set<std::string> files, files_of_plan(fs, plan));
  for (const std::string& file : files) {
    const std::string below = plan.relative(file);
    const bool leads_out = below.starts_with("/") || below == ".." || below.starts_with("../") ||
                           below.find("/../") != std::string::npos || !io::path_scheme(below).empty();
    if (leads_out)
      remarks.push_back(fmt::format("{} is left out: it does not lie below the plan's folder", file));
    else
      RETURN_IF_ERROR(copy_to(fs, file, io::join_path(place, below)));
  }
  return {};
}

Status copy_lab(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                const std::string& place) {
  io::FileSystem& fs = context.fs;
  const std::string from = plan.directory(), to = io::join_path(place, plan.relative(from));
  for (const char* file : {lab::kJournalFile, lab::kRegistryFile}) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(from, file)));
    if (there) RETURN_IF_ERROR(copy_to(fs, io::join_path(from, file), io::join_path(to, file)));
  }
  const auto plans = lab::files_below(fs, io::join_path(from, "plans"));
  if (!plans.ok() && plans.error().code() != ErrorCode::kNotFound) return plans.error();
  if (plans.ok())
    for (const std::string& file : *plans)
      RETURN_IF_ERROR(copy_to(fs, io::join_path(io::join_path(from, "plans"), file),
                              io::join_path(io::join_path(to, "plans"), file)));
  std::set<std::string> done;  // steps with the same fingerprint have one output
  for (const lab::StepState& s : state.kept()) {
    const std::string& folder = state.made.at(s.step->name).folder;
    if (folder.empty() || !done.insert(s.fingerprint).second) continue;
    const std::string output = lab::output_folder(to, s.fingerprint);
    RETURN_IF_ERROR(fs.make_dirs(output));
    RETURN_IF_ERROR(
        copy_to(fs, lab::manifest_path(from, s.fingerprint), lab::manifest_path(to, s.fingerprint)));
    if (s.step->kind->makes_run()) {
      RETURN_IF_ERROR(copy_run(context, folder, output));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> files, lab::files_below(fs, folder));
    for (const std::string& file : files)
      if (is_taken(plan, *s.step, file))
        RETURN_IF_ERROR(copy_to(fs, io::join_path(folder, file), io::join_path(output, file)));
  }
  return {};
}

}  // namespace ostro::publication
