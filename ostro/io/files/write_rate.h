// write_rate: how fast a folder takes bytes that are synced.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Bytes a second: writes 32 MiB to the file at `path`, which must not be there, syncs it and removes it.
// Errors: those of writing.
Result<double> write_rate(FileSystem& fs, const std::string& path);

}  // namespace ostro::io
