// write_file_atomically, write_file_once: atomic replacement of files. After a power loss there is either the
// old file or the new one, never a mixture.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Writes a temporary file beside `path`, syncs it, renames it to `path` and syncs the directory. On an error
// the old file is unchanged, and the temporary one is removed if that is still possible. In an object store,
// where a file appears as a whole, it is written without a temporary one.
Status write_file_atomically(FileSystem& fs, const std::string& path, std::string_view content);

// Like the first form, for content that `write` appends piece by piece. An error of `write` is returned.
Status write_file_atomically(FileSystem& fs, const std::string& path,
                             const std::function<Status(WritableFile&)>& write);

// As the first form, for a file that is not there. In an object store it fails (kIo), and changes nothing,
// when another process has put other bytes there.
Status write_file_once(FileSystem& fs, const std::string& path, std::string_view content);

// The temporary name for `path`: in the same directory, ending in ".tmp". So a path may have only one writer
// at a time.
std::string temporary_path(const std::string& path);

}  // namespace ostro::io
