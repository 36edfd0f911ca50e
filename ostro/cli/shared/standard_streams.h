// Standard input and output as whole texts.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cli {

// Everything on standard input, bytes unchanged.
Result<std::string> read_stdin();

// Writes and flushes. Error: a write that fails, as on a full disk; not a reader that has gone (head, less).
Status write_stdout(std::string_view text);
// Whether a reader has gone: nobody sees what is written from now on.
bool stdout_closed();

}  // namespace ostro::cli
