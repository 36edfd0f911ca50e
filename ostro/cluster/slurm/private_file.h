// write_private_file, make_private_folder, read_private_file: files that only their user can read, in a
// folder that only he can write.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cluster {

// Replaces the file by one of mode 0600, at once: who reads it sees the old text or the new one. Errors: kIo.
Status write_private_file(const std::string& path, std::string_view text);

// Makes the folder, with mode 0700; the one in which it lies must be there. Errors: kInvalidArgument when
// there is one that is not this user's, that others can write, or a link; kIo.
Status make_private_folder(const std::string& path);

// The text of a file that is this user's, and that no other can read or write; nothing when there is none.
std::optional<std::string> read_private_file(const std::string& path);

}  // namespace ostro::cluster
