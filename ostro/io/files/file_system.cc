#include "ostro/io/files/file_system.h"

#include <algorithm>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

// Collects the matching files below `directory`. Enters only directories that can contain a match.
class GlobWalk {
 public:
  // `pattern` is relative to the directory where visit() begins.
  GlobWalk(FileSystem& fs, std::string_view pattern) : fs_(fs) {
    for (size_t begin = 0; begin <= pattern.size();) {
      const size_t end = std::min(pattern.find('/', begin), pattern.size());
      if (end > begin) components_.emplace_back(pattern.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  Status visit(const std::string& directory, size_t component) {
    const bool last = component + 1 == components_.size();
    const std::string& pattern = components_[component];
    if (pattern == "**") {
      // "**" matches no component here, or one directory more and then the same again. At the end it matches
      // every file.
      if (!last) RETURN_IF_ERROR(visit(directory, component + 1));
      return for_entries(directory, [&](const DirEntry& entry, const std::string& path) -> Status {
        if (entry.name.starts_with('.')) return {};
        if (entry.is_directory) return visit(path, component);
        if (last) found_.push_back({path, entry.info});
        return {};
      });
    }
    if (!has_wildcard(pattern)) {
      const std::string path = join_path(directory, pattern);
      if (!last) return visit(path, component + 1);  // a missing directory has no entries
      auto info = fs_.stat(path);
      if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? Status() : Status(info.error());
      if (!info->is_directory) found_.push_back({path, *info});
      return {};
    }
    // A name that is there is taken as it is, whatever characters it has: "a[1].txt", "what?.txt".
    bool is_name = false;
    RETURN_IF_ERROR(for_entries(directory, [&](const DirEntry& entry, const std::string&) -> Status {
      is_name |= entry.name == pattern;
      return {};
    }));
    return for_entries(directory, [&](const DirEntry& entry, const std::string& path) -> Status {
      if (entry.name.starts_with('.') && !pattern.starts_with('.')) return {};
      if (is_name ? entry.name != pattern : !glob_match(pattern, entry.name)) return {};
      if (last && !entry.is_directory) found_.push_back({path, entry.info});
      return !last && entry.is_directory ? visit(path, component + 1) : Status();
    });
  }

  struct Found {
    std::string path;
    std::optional<FileInfo> info;
  };
  // By path, each once.
  std::vector<Found> take() {
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.path < b.path; });
    const auto same = [](const Found& a, const Found& b) { return a.path == b.path; };
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    return std::move(found_);
  }

  bool empty() const { return components_.empty(); }

 private:
  template <typename F>
  Status for_entries(const std::string& directory, F&& f) {
    // "**" visits each directory twice: for the rest of the pattern, and for its subdirectories.
    if (!listed_ || listed_->first != directory) {
      auto entries = fs_.list(directory.empty() ? "." : directory);
      if (!entries.ok())
        return entries.error().code() == ErrorCode::kNotFound ? Status() : Status(entries.error());
      listed_ = {directory, std::make_shared<const std::vector<DirEntry>>(std::move(*entries))};
    }
    const auto entries = listed_->second;
    for (const DirEntry& entry : *entries) RETURN_IF_ERROR(f(entry, join_path(directory, entry.name)));
    return {};
  }

  FileSystem& fs_;
  std::vector<std::string> components_;
  std::vector<Found> found_;
  std::optional<std::pair<std::string, std::shared_ptr<const std::vector<DirEntry>>>>
      listed_;  // the last one
};

Result<std::vector<GlobWalk::Found>> walk_glob(FileSystem& fs, const std::string& pattern) {
  std::string root = pattern.starts_with('/') ? "/" : "";
  std::string_view rest = pattern;
  if (const std::string_view scheme = path_scheme(pattern); !scheme.empty()) {
    root = pattern.substr(0, pattern.find('/', scheme.size()));
    if (has_wildcard(root))
      return invalid_argument(
          fmt::format("{}: a wildcard in the name of a bucket; name it in full", pattern));
    rest.remove_prefix(root.size());
  }
  GlobWalk walk(fs, rest);
  if (!walk.empty()) RETURN_IF_ERROR(walk.visit(root, 0));
  return walk.take();
}

}  // namespace

Result<std::string> FileSystem::read_file(const std::string& path, int64_t limit) {
  // A local file that is replaced stays as it was for who has opened it; an object does not.
  for (int i = 0; i < 3 && is_object_store(path); ++i) {
    auto text = read_once(path, limit);
    if (text.ok() || text.error().code() != ErrorCode::kCorrupt) return text;
  }
  return read_once(path, limit);
}

Result<std::string> FileSystem::read_once(const std::string& path, int64_t limit) {
  ASSIGN_OR_RETURN(auto file, open(path));
  if (file->size() > limit) {
    return corrupt(
        fmt::format("{}: {} bytes, more than the {} that such a file may have", path, file->size(), limit));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Status FileSystem::write_file(const std::string& path, std::string_view content) {
  ASSIGN_OR_RETURN(const auto file, create(path));
  RETURN_IF_ERROR(file->append(content));
  return file->close();
}

Result<bool> FileSystem::exists(const std::string& path) {
  auto info = stat(path);
  if (info.ok()) return true;
  if (info.error().code() == ErrorCode::kNotFound) return false;
  return info.error();
}

Status FileSystem::write_later(const std::string& path, std::string_view content) {
  return write_file_atomically(*this, path, content);
}

Status FileSystem::remove_all(const std::string& path) {
  // A link is removed and not entered, also one to a directory or to nothing.
  const Status removed = remove(path);
  if (removed.ok() || removed.error().code() == ErrorCode::kNotFound) return {};
  const auto info = stat(path);
  if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? Status() : Status(info.error());
  if (!info->is_directory) return removed;
  ASSIGN_OR_RETURN(const auto entries, list(path));
  for (const DirEntry& entry : entries) RETURN_IF_ERROR(remove_all(join_path(path, entry.name)));
  return remove(path);
}

Result<std::vector<std::string>> FileSystem::glob(const std::string& pattern) {
  ASSIGN_OR_RETURN(auto found, walk_glob(*this, pattern));
  std::vector<std::string> paths;
  for (auto& file : found) paths.push_back(std::move(file.path));
  return paths;
}

Result<std::vector<FoundFile>> FileSystem::find_files(const std::string& pattern,
                                                      const std::function<bool(const std::string&)>& wanted) {
  ASSIGN_OR_RETURN(auto found, walk_glob(*this, pattern));
  std::vector<FoundFile> files;
  for (auto& file : found) {
    if (wanted && !wanted(file.path)) continue;
    if (!file.info) {
      ASSIGN_OR_RETURN(file.info, stat(file.path));
    }
    files.push_back({std::move(file.path), *file.info});
  }
  return files;
}

}  // namespace ostro::io
