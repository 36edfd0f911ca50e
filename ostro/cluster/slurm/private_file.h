// write_private_file: a file that only its user can read.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cluster {

// Replaces the file by one of mode 0600, at once: who reads it sees the old text or the new one. Errors: kIo.
Status write_private_file(const std::string& path, std::string_view text);

}  // namespace ostro::cluster
