#include "ostro/board/confined_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ostro/io/files/path.h"

namespace ostro::board {
namespace {

bool is_below(const std::string& path, const std::string& folder) {
  const std::string inner = io::absolute_path(path), outer = io::absolute_path(folder);
  if (io::path_scheme(inner) != io::path_scheme(outer)) return false;
  // A name with a scheme keeps its "..", whatever the store behind it makes of it.
  if (!io::path_scheme(inner).empty() && (inner + "/").find("/../") != std::string::npos) return false;
  return inner == outer || inner.starts_with(outer.ends_with('/') ? outer : outer + "/");
}

}  // namespace

ConfinedFiles::ConfinedFiles(io::FileSystem& base, std::vector<std::string> folders)
    : ForwardingFileSystem(base), folders_(std::move(folders)) {
  std::erase(folders_, "");
}

Status ConfinedFiles::before(Operation, const std::string& path) {
  if (std::any_of(folders_.begin(), folders_.end(),
                  [&](const std::string& folder) { return is_below(path, folder); }))
    return {};
  return not_found(fmt::format("{} is not opened: the check of an entry reads nothing outside of {}", path,
                               fmt::join(folders_, ", ")));
}

}  // namespace ostro::board
