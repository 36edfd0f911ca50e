// copy_file, copy_tree: copies of files with equal bytes.
//
// `from` is a file, or a directory with everything below it; `to` must not exist, its parent must. Nothing is
// synced: a caller syncs what it needs (FileSystem::sync_tree). Errors name the path; what was copied until
// then stays. Memory: one block.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

Status copy_file(FileSystem& fs, const std::string& from, const std::string& to);
Status copy_tree(FileSystem& fs, const std::string& from, const std::string& to);

}  // namespace ostro::io
