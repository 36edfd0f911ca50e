// Reads standard input and writes standard output as whole texts.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::cli {

// Everything on standard input, bytes unchanged.
Result<std::string> read_stdin();

// Writes and flushes. Error: the write fails, for example on a full disk. A closed reader (head, less) is not
// an error.
Status write_stdout(std::string_view text);
// Whether the reader has closed the pipe, so further output is not seen.
bool stdout_closed();

}  // namespace ostro::cli
