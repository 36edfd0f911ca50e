#include "ostro/checkpoint/catalog.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "ostro/base/parallel.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-", kTemporary = ".tmp", kReplaced = ".old";
constexpr int64_t kMaxManifestBytes = int64_t{1} << 30;

// The step in "step-00000042"; none for any other name.
std::optional<int64_t> parse_step(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), step);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() || name.size() < 8 || step < 0) {
    return std::nullopt;
  }
  return step;
}

}  // namespace

std::string step_directory(int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

std::optional<int64_t> step_of_directory(std::string_view name) {
  // A save that replaces a checkpoint sets the old one aside for a moment; a crash then leaves only that.
  if (name.ends_with(kReplaced)) name.remove_suffix(kReplaced.size());
  return parse_step(name);
}

Result<std::vector<Entry>> list_checkpoints(io::FileSystem& fs, const std::string& root) {
  std::vector<Entry> out;
  auto entries = fs.list(root);
  if (!entries.ok()) {
    if (entries.error().code() == ErrorCode::kNotFound) return out;
    return entries.error();
  }
  std::map<int64_t, std::string> by_step;
  for (const io::DirEntry& entry : *entries) {  // sorted: "step-1" comes before "step-1.old"
    if (!entry.is_directory) continue;
    if (const auto step = step_of_directory(entry.name))
      by_step.try_emplace(*step, io::join_path(root, entry.name));
  }
  const bool store = fs.is_object_store(root);
  for (const auto& [step, path] : by_step) {
    if (store) {  // there a checkpoint is written where it will be, and begins with its manifest
      ASSIGN_OR_RETURN(const bool begun, fs.exists(io::join_path(path, kManifestName)));
      if (!begun) continue;
    }
    out.push_back({step, path});
  }
  return out;
}

Result<std::vector<std::string>> find_checkpoints(io::FileSystem& fs, const std::string& where) {
  ASSIGN_OR_RETURN(const bool is_checkpoint, fs.exists(io::join_path(where, kManifestName)));
  if (is_checkpoint) return std::vector<std::string>{where};
  ASSIGN_OR_RETURN(const auto entries, list_checkpoints(fs, io::join_path(where, kCheckpointsFolder)));
  if (entries.empty()) {
    const auto is_hf = fs.exists(io::join_path(where, "config.json"));
    return not_found(
        fmt::format("{}: neither a checkpoint (it has no {}) nor a run with one (no {}/step-*){}", where,
                    kManifestName, kCheckpointsFolder,
                    is_hf.ok() && *is_hf ? "; it has a config.json: ostro import makes a checkpoint "
                                           "of a Hugging Face directory"
                                         : ""));
  }
  std::vector<std::string> paths;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) paths.push_back(entry->path);
  return paths;
}

Result<Manifest> read_manifest(io::FileSystem& fs, const std::string& path) {
  const std::string file = io::join_path(path, kManifestName);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(file, kMaxManifestBytes));
  return parse_manifest(text, file);
}

// Renamed first to *.tmp, which no reader lists, then removed file by file. In an object store the manifest
// goes first: without it no reader lists the rest.
Status remove_checkpoint(io::FileSystem& fs, const std::string& path) {
  if (fs.is_object_store(path)) {
    RETURN_IF_ERROR(fs.remove(io::join_path(path, kManifestName)));
    return fs.remove_all(path);
  }
  const std::string going = path + std::string(kTemporary);
  RETURN_IF_ERROR(fs.remove_all(going));
  RETURN_IF_ERROR(fs.rename(path, going));
  RETURN_IF_ERROR(fs.sync_dir(io::parent_path(path)));
  RETURN_IF_ERROR(fs.remove_all(going));
  return fs.sync_dir(io::parent_path(path));
}

namespace {

Status collect_objects(io::FileSystem& fs, const std::string& folder, const std::string& below,
                       std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const auto entries, fs.list(io::join_path(folder, below)));
  for (const io::DirEntry& entry : entries) {
    const std::string name = below.empty() ? entry.name : io::join_path(below, entry.name);
    if (entry.is_directory) RETURN_IF_ERROR(collect_objects(fs, folder, name, names));
    if (!entry.is_directory) names.push_back(name);
  }
  return {};
}

// In an object store, where a folder has no name of its own. The manifest goes first: without it no reader
// takes the rest for a checkpoint, and what a process that is killed here leaves is removed by the next save.
Status move_objects(io::FileSystem& fs, const std::string& from, const std::string& to) {
  constexpr int kAtATime = 8;
  std::vector<std::string> names;
  RETURN_IF_ERROR(collect_objects(fs, from, "", names));
  const auto move = [&](const std::string& name) {
    return fs.rename(io::join_path(from, name), io::join_path(to, name));
  };
  RETURN_IF_ERROR(move(kManifestName));
  std::erase(names, kManifestName);
  return parallel_for(static_cast<int64_t>(names.size()), kAtATime,
                      [&](int64_t i) { return move(names[static_cast<size_t>(i)]); });
}

}  // namespace

Result<std::string> set_aside(io::FileSystem& fs, const std::string& path) {
  const std::string first = io::join_path(io::parent_path(path), "damaged-" + io::base_name(path));
  std::string aside = first;
  for (int number = 2;; ++number) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(aside));
    if (!there) break;
    aside = fmt::format("{}.{}", first, number);
  }
  if (fs.is_object_store(path)) {
    RETURN_IF_ERROR(move_objects(fs, path, aside));
    return aside;
  }
  RETURN_IF_ERROR(fs.rename(path, aside));
  RETURN_IF_ERROR(fs.sync_dir(io::parent_path(path)));
  return aside;
}

Status prune_checkpoints(io::FileSystem& fs, const std::string& root, int64_t newest) {
  ASSIGN_OR_RETURN(const auto entries, list_checkpoints(fs, root));
  int64_t newer = 0;  // readable ones seen so far
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->step > newest) continue;
    const auto manifest = read_manifest(fs, entry->path);
    if (!manifest.ok()) continue;
    if (newer >= 2 && manifest->info.kind == Kind::kTemporary)
      RETURN_IF_ERROR(remove_checkpoint(fs, entry->path));
    ++newer;
  }
  return {};
}

Status remove_leftovers(io::FileSystem& fs, const std::string& root) {
  auto entries = fs.list(root);
  if (!entries.ok())
    return entries.error().code() == ErrorCode::kNotFound ? Status() : Status(entries.error());
  for (const io::DirEntry& entry : *entries) {
    const std::string path = io::join_path(root, entry.name);
    if (!entry.name.starts_with(kPrefix)) continue;
    if (entry.is_directory && fs.is_object_store(root) && parse_step(entry.name)) {
      ASSIGN_OR_RETURN(const bool complete, fs.exists(io::join_path(path, kManifestName)));
      if (!complete) RETURN_IF_ERROR(fs.remove_all(path));
    } else if (entry.name.ends_with(kReplacedManifest)) {
      const std::string place = path.substr(0, path.size() - std::string_view(kReplacedManifest).size());
      ASSIGN_OR_RETURN(const bool complete, fs.exists(io::join_path(place, kManifestName)));
      if (complete) RETURN_IF_ERROR(fs.remove(path));
    } else if (entry.name.ends_with(kTemporary)) {
      RETURN_IF_ERROR(fs.remove_all(path));
    } else if (entry.name.ends_with(kReplaced)) {
      const std::string current = path.substr(0, path.size() - kReplaced.size());
      ASSIGN_OR_RETURN(const bool replaced, fs.exists(current));
      if (replaced) {
        RETURN_IF_ERROR(remove_checkpoint(fs, path));
      } else {  // the replacement never came: the old one is the checkpoint again
        RETURN_IF_ERROR(fs.rename(path, current));
        RETURN_IF_ERROR(fs.sync_dir(root));
      }
    }
  }
  return {};
}

}  // namespace ostro::checkpoint
