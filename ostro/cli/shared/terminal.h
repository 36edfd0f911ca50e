// What standard output can show.
#pragma once

#include "ostro/page/terminal/canvas.h"

namespace ostro::cli {

// Its width: COLUMNS, else that of the terminal, else 80 (a pipe or file). ASCII where `ascii` says so or the
// locale (LC_ALL, LC_CTYPE, LANG) has no UTF-8. Colours on a terminal that has them, unless NO_COLOR is set.
page::Terminal stdout_terminal(bool ascii);

}  // namespace ostro::cli
