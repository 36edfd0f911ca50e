// local_file_system, is_link: the files of the operating system.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// A single object without state. Thread-safe. It lives as long as the process.
FileSystem& local_file_system();

// Returns true when a path of the operating system is a symbolic link, wherever that leads; false when
// nothing is there.
bool is_link(const std::string& path);

}  // namespace ostro::io
