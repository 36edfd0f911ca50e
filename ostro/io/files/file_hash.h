// file_sha256: the checksum of a file.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Returns the SHA-256 of a file's bytes, 64 hexadecimal digits. Reads the file in pieces. Errors: those of
// reading it.
Result<std::string> file_sha256(FileSystem& fs, const std::string& path);

}  // namespace ostro::io
