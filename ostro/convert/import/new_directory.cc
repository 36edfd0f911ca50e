#include "ostro/convert/import/new_directory.h"

#include <fmt/core.h>

#include "ostro/io/files/path.h"

namespace ostro::convert {

Status check_is_new(io::FileSystem& fs, const std::string& out) {
  ASSIGN_OR_RETURN(const bool exists, fs.exists(io::clean_path(out)));
  if (!exists) return {};
  return invalid_argument(fmt::format("--out {}: is there already; name another directory", out));
}

Status make_whole(io::FileSystem& fs, const std::string& out,
                  const std::function<Status(const std::string& place)>& write, const char* suffix) {
  const std::string clean = io::clean_path(out), place = clean + suffix;
  RETURN_IF_ERROR(fs.remove_all(place));
  Status written = fs.make_dirs(place);
  if (written.ok()) written = write(place);
  if (written.ok()) written = fs.rename(place, clean);
  if (!written.ok()) {
    (void)fs.remove_all(place);
    return written;
  }
  return fs.sync_dir(io::parent_path(clean));
}

}  // namespace ostro::convert
