// The operating system's files.
#pragma once

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// One object without state, alive for the whole process.
FileSystem& local_file_system();

}  // namespace ostro::io
