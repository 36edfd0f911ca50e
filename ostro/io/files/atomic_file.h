// Files that are either the old one or the new one, whenever the power goes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Writes a temporary name beside `path`, syncs it, renames it over `path` and syncs the directory. On an
// error the old file is untouched and the temporary one is removed where that is still possible.
Status write_file_atomically(FileSystem& fs, const std::string& path, std::string_view content);

// The same for content that is written piece by piece.
Status write_file_atomically(FileSystem& fs, const std::string& path,
                             const std::function<Status(WritableFile&)>& write);

// The temporary name used for `path`: same directory, ends in ".tmp". One writer per path at a time.
std::string temporary_path(const std::string& path);

}  // namespace ostro::io
