// local_file_system: the files of the operating system.
#pragma once

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// A single object without state. Thread-safe. It lives as long as the process.
FileSystem& local_file_system();

}  // namespace ostro::io
