// only_local: refuses an object store where something is made that needs a disk.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Error: kUnsupported if the path is in an object store. `what` is what would be made there: "token stores".
inline Status only_local(FileSystem& fs, const std::string& path, std::string_view what) {
  if (!fs.is_object_store(path)) return {};
  return unsupported(fmt::format(
      "{}: cannot make {} there: of these, s3:// can only be read (folders cannot be renamed there, and "
      "appends are dear); write to a local directory, and copy it when it is finished",
      path, what));
}

}  // namespace ostro::io
