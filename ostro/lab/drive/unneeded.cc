#include "ostro/lab/drive/unneeded.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/experiment/journal/journal.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/drive/lab_lock.h"

namespace ostro::lab {
namespace {

bool is_output_name(const std::string& name) {
  return name.size() == kOutputNameDigits && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// What a step that was killed left beside its output.
bool is_left_beside(const std::string& name) {
  return std::any_of(std::begin(kBesideOutput), std::end(kBesideOutput), [&](const std::string end) {
    return name.ends_with(end) && is_output_name(name.substr(0, name.size() - end.size()));
  });
}

// The bytes of a file, or of the files below a folder. What a link leads to does not belong to it.
Result<int64_t> size_of(io::FileSystem& fs, const std::string& path, const io::DirEntry& entry) {
  int64_t bytes = 0;
  if (entry.is_link) return bytes;
  if (!entry.is_directory) {
    ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(path));
    return info.size;
  }
  ASSIGN_OR_RETURN(const auto entries, fs.list(path));
  for (const io::DirEntry& below : entries) {
    ASSIGN_OR_RETURN(const int64_t size, size_of(fs, io::join_path(path, below.name), below));
    bytes += size;
  }
  return bytes;
}

// Whether `register --check` compares its chain: a run that was done under a registration.
bool is_registered_run(const DoneEntry& entry) {
  if (entry.registration.empty()) return false;
  const auto recipe = nlohmann::json::parse(entry.recipe, nullptr, false);
  const StepKind* kind = recipe.is_object() ? find_kind(recipe.value("kind", std::string())) : nullptr;
  return kind != nullptr && kind->makes_run();
}

// Outputs that no step of the plan has.
Result<std::vector<UnneededOutput>> find_unneeded(io::FileSystem& fs, const Plan& plan,
                                                  const LabState& state) {
  std::set<std::string> kept;  // names of folders
  for (const StepState& s : state.kept()) {
    if (s.action != Action::kSkip)
      return invalid_argument(fmt::format(
          "{}: step {}: {}{}. What the steps behind it need is known when all are done: `ostro lab "
          "run {}` comes first",
          s.step->where, s.step->name, s.action == Action::kFail ? "" : "is not done: ", s.reason,
          plan.file));
    kept.insert(s.fingerprint.substr(0, kOutputNameDigits));
  }
  ASSIGN_OR_RETURN(const Journal journal, Journal::open(fs, plan.directory()));
  std::map<std::string, const DoneEntry*> done;  // the last entry of each
  for (const DoneEntry& entry : journal.done()) {
    const std::string name = entry.fingerprint.substr(0, kOutputNameDigits);
    done[name] = &entry;
    if (journal.has_conflict(entry.fingerprint) || is_registered_run(entry)) kept.insert(name);
  }
  const std::string top = io::join_path(plan.directory(), "out");
  ASSIGN_OR_RETURN(const bool has_outputs, fs.exists(top));
  std::vector<UnneededOutput> out;
  if (!has_outputs) return out;
  ASSIGN_OR_RETURN(const auto entries, fs.list(top));
  for (const io::DirEntry& entry : entries) {
    const bool is_output = entry.is_directory && is_output_name(entry.name) && !kept.contains(entry.name);
    if (!is_output && !is_left_beside(entry.name)) continue;
    UnneededOutput found;
    found.folder = io::join_path(top, entry.name);
    if (const auto known = done.find(entry.name); known != done.end()) {
      found.step = known->second->step;
      found.content = known->second->content;
    }
    ASSIGN_OR_RETURN(found.bytes, size_of(fs, found.folder, entry));
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace

Result<std::vector<UnneededOutput>> remove_unneeded(const Context& context, const Plan& plan, bool dry_run) {
  io::FileSystem& fs = context.fs;
  std::unique_ptr<io::FileLock> lock;
  if (!dry_run) {
    ASSIGN_OR_RETURN(lock, lock_lab(fs, plan));
  }
  ASSIGN_OR_RETURN(const LabState state, look_at(context, plan));
  ASSIGN_OR_RETURN(std::vector<UnneededOutput> unneeded, find_unneeded(fs, plan, state));
  if (dry_run) return unneeded;
  for (const UnneededOutput& output : unneeded) {  // without its list of files an output counts as gone
    RETURN_IF_ERROR(fs.remove_all(output.folder + ".json"));
    RETURN_IF_ERROR(fs.remove_all(output.folder));
  }
  return unneeded;
}

}  // namespace ostro::lab
