#include "ostro/io/file_system.h"

#include <algorithm>

#include "ostro/io/path.h"

namespace ostro::io {
namespace {

// Collects the files below `directory` that match, walking only into directories that can.
class GlobWalk {
 public:
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
      // No component here, or one directory more and the same again. "**" at the end takes every file.
      if (!last) RETURN_IF_ERROR(visit(directory, component + 1));
      return for_entries(directory, [&](const DirEntry& entry, const std::string& path) -> Status {
        if (entry.name.starts_with('.')) return {};
        if (entry.is_directory) return visit(path, component);
        if (last) found_.push_back(path);
        return {};
      });
    }
    if (!has_wildcard(pattern)) {
      const std::string path = join_path(directory, pattern);
      auto info = fs_.stat(path);
      if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? Status() : Status(info.error());
      if (last && !info->is_directory) found_.push_back(path);
      return !last && info->is_directory ? visit(path, component + 1) : Status();
    }
    return for_entries(directory, [&](const DirEntry& entry, const std::string& path) -> Status {
      if (entry.name.starts_with('.') && !pattern.starts_with('.')) return {};
      if (!glob_match(pattern, entry.name)) return {};
      if (last && !entry.is_directory) found_.push_back(path);
      return !last && entry.is_directory ? visit(path, component + 1) : Status();
    });
  }

  std::vector<std::string> take() {
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return std::move(found_);
  }

  bool empty() const { return components_.empty(); }

 private:
  template <typename F>
  Status for_entries(const std::string& directory, F&& f) {
    auto entries = fs_.list(directory.empty() ? "." : directory);
    if (!entries.ok())
      return entries.error().code() == ErrorCode::kNotFound ? Status() : Status(entries.error());
    for (const DirEntry& entry : *entries) RETURN_IF_ERROR(f(entry, join_path(directory, entry.name)));
    return {};
  }

  FileSystem& fs_;
  std::vector<std::string> components_;
  std::vector<std::string> found_;
};

}  // namespace

Result<std::string> FileSystem::read_file(const std::string& path, int64_t limit) {
  ASSIGN_OR_RETURN(auto file, open(path));
  if (file->size() > limit) {
    return corrupt(
        fmt::format("{}: {} bytes, more than the {} that such a file may have", path, file->size(), limit));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<bool> FileSystem::exists(const std::string& path) {
  auto info = stat(path);
  if (info.ok()) return true;
  if (info.error().code() == ErrorCode::kNotFound) return false;
  return info.error();
}

Status FileSystem::remove_all(const std::string& path) {
  auto info = stat(path);
  if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? Status() : Status(info.error());
  if (info->is_directory) {
    ASSIGN_OR_RETURN(const auto entries, list(path));
    for (const DirEntry& entry : entries) RETURN_IF_ERROR(remove_all(join_path(path, entry.name)));
  }
  return remove(path);
}

Result<std::vector<std::string>> FileSystem::glob(const std::string& pattern) {
  GlobWalk walk(*this, pattern);
  if (!walk.empty()) RETURN_IF_ERROR(walk.visit(pattern.starts_with('/') ? "/" : "", 0));
  return walk.take();
}

}  // namespace ostro::io
