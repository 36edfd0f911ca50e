#include "ostro/bundle/publish/copy_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/record/fork.h"
#include "ostro/audit/record/initial.h"
#include "ostro/bundle/parts/file_sums.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/train/options/shown_config.h"

namespace ostro::bundle {
namespace {

struct Copy {
  std::string path;    // below the run's directory
  int64_t bytes = -1;  // from the beginning; -1: all
};

bool is_wanted(const std::string& name) {
  static constexpr const char* kFiles[] = {chain::kConfigFile,    "program.ir",
                                           "tokenizer.json",      "tokenizer_config.json",
                                           "chat_template.jinja", "reference.safetensors",
                                           "leaves.jsonl"};
  for (const char* file : kFiles)
    if (name == file) return true;
  return name.starts_with("program-") && name.ends_with(".ir");
}

// Of a state's directory; paths are below it.
bool is_of_weights(const std::string& path) {
  return audit::is_weight_array(path) || path.find('/') == std::string::npos;
}

Status add_state(io::FileSystem& fs, const std::string& run, const std::string& state,
                 const std::function<bool(const std::string&)>& wanted, std::vector<Copy>& out) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, io::join_path(run, state)));
  for (const std::string& file : files)
    if (wanted(file)) out.push_back({io::join_path(state, file)});
  return {};
}

Result<std::vector<Copy>> copies_of(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                                    const RecordChoice& choice) {
  std::vector<Copy> out = {{chain::kChainFile, chain.bytes}};
  ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, fs.list(run));
  for (const io::DirEntry& entry : entries) {
    if (!entry.is_directory && is_wanted(entry.name)) out.push_back({entry.name});
    if (entry.is_directory && (entry.name == "additional_chat_templates" ||
                               entry.name == audit::kParentFolder || entry.name == audit::kMakerFolder))
      RETURN_IF_ERROR(add_state(fs, run, entry.name, [](const std::string&) { return true; }, out));
  }
  const auto wanted = [&](const std::string& path) { return choice.has_moments || is_of_weights(path); };
  for (const int64_t step : choice.steps)
    RETURN_IF_ERROR(add_state(fs, run,
                              io::join_path(checkpoint::kCheckpointsFolder, checkpoint::step_directory(step)),
                              wanted, out));
  ASSIGN_OR_RETURN(const bool has_initial, fs.exists(io::join_path(run, audit::kInitialFolder)));
  if (has_initial)
    RETURN_IF_ERROR(add_state(
        fs, run, io::join_path(audit::kInitialFolder, checkpoint::step_directory(chain.genesis().step())),
        wanted, out));
  return out;
}

// The text that is copied in place of a file which can have the words of commands: the configuration, which
// is the one in force, and manifests, into which earlier versions wrote the whole configuration. Nothing: the
// file has no such words, and is copied as it is.
Result<std::optional<std::string>> text_to_show(io::FileSystem& fs, const std::string& run,
                                                const std::string& path) {
  const std::string name = io::base_name(path);
  std::string from = io::join_path(run, path);
  if (name == chain::kConfigFile) {
    if (path == chain::kConfigFile) from = chain::config_file(fs, run);
    ASSIGN_OR_RETURN(const std::string config, fs.read_file(from));
    return std::optional<std::string>(train::config_to_show(config));
  }
  if (name != checkpoint::kManifestName) return std::optional<std::string>();
  ASSIGN_OR_RETURN(checkpoint::Manifest manifest, checkpoint::read_manifest(fs, io::parent_path(from)));
  std::string config = train::config_to_show(manifest.info.config);
  if (config == manifest.info.config) return std::optional<std::string>();
  manifest.info.config = std::move(config);
  return std::optional<std::string>(checkpoint::manifest_json(manifest));
}

// The record of sessions without what tells of the machine and its user.
Status copy_sessions(io::FileSystem& fs, const std::string& run, const std::string& place) {
  auto record = chain::read_record(fs, io::join_path(run, chain::kRecordFile));
  if (!record.ok()) return {};  // the run can be checked without it
  for (chain::Session& session : record->sessions) session.argv.clear(), session.directory.clear();
  record->parent.clear();
  return chain::write_record(fs, io::join_path(place, chain::kRecordFile), *record);
}

}  // namespace

Result<std::vector<int64_t>> choose_steps(io::FileSystem& fs, const std::string& run,
                                          const chain::Chain& chain, int64_t published, int64_t count) {
  ASSIGN_OR_RETURN(const auto there,
                   checkpoint::list_checkpoints(fs, io::join_path(run, checkpoint::kCheckpointsFolder)));
  std::set<int64_t> left;
  for (const checkpoint::Entry& entry : there)
    if (entry.step != published && chain.find_checkpoint(entry.step) != nullptr) left.insert(entry.step);
  std::vector<int64_t> out = {published};
  for (int64_t i = 1; i <= count && !left.empty(); ++i) {
    const double target =
        static_cast<double>(chain.last_step()) * static_cast<double>(i) / static_cast<double>(count + 1);
    const auto nearest = std::min_element(left.begin(), left.end(), [&](int64_t a, int64_t b) {
      return std::abs(static_cast<double>(a) - target) < std::abs(static_cast<double>(b) - target);
    });
    out.push_back(*nearest);
    left.erase(nearest);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Status copy_record(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                   const RecordChoice& choice, const std::string& place, Progress& progress) {
  ASSIGN_OR_RETURN(const std::vector<Copy> copies, copies_of(fs, run, chain, choice));
  int64_t total = 0, done = 0;
  for (const Copy& copy : copies) {
    ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(io::join_path(run, copy.path)));
    total += copy.bytes < 0 ? info.size : copy.bytes;
  }
  std::set<std::string> made;
  for (const Copy& copy : copies) {
    const std::string to = io::join_path(place, copy.path), folder = io::parent_path(to);
    if (made.insert(folder).second) RETURN_IF_ERROR(fs.make_dirs(folder));
    ASSIGN_OR_RETURN(const std::optional<std::string> text, text_to_show(fs, run, copy.path));
    if (text) {
      RETURN_IF_ERROR(fs.write_file(to, *text));
      continue;
    }
    RETURN_IF_ERROR(copy_file(
        fs, io::join_path(run, copy.path), to,
        [&](int64_t bytes) {
          done += bytes;
          progress.show("copying the record",
                        static_cast<double>(done) / static_cast<double>(std::max<int64_t>(total, 1)));
        },
        copy.bytes));
  }
  progress.end();
  return copy_sessions(fs, run, place);
}

}  // namespace ostro::bundle
