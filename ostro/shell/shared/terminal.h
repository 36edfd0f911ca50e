// The terminal: standard input and output as whole texts, and the abilities of standard output.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/page/terminal/canvas.h"

namespace ostro::cli {

// Reads standard input to its end, bytes unchanged. Error: the read fails.
Result<std::string> read_stdin();

// Writes and flushes. Error: the write fails, for example on a full disk. A closed reader (head, less) is not
// an error.
Status write_stdout(std::string_view text);
// Returns true when the reader has closed the pipe, so that further output is not seen.
bool stdout_closed();

// The width of standard output: COLUMNS, else that of the terminal, else 80 (a pipe or file). ASCII where
// `ascii` says so or the locale (LC_ALL, LC_CTYPE, LANG) has no UTF-8. Colours on a terminal that has them,
// unless NO_COLOR is set.
page::Terminal stdout_terminal(bool ascii);

}  // namespace ostro::cli
