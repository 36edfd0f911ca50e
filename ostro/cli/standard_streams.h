// Standard input and output as whole texts.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cli {

// Everything on standard input, bytes unchanged.
Result<std::string> read_stdin();

// Writes and flushes; a failed write (full disk, closed pipe) is an error.
Status write_stdout(std::string_view text);

}  // namespace ostro::cli
