// text_plot: curves drawn with characters, for a terminal, a log or a mail.
#pragma once

#include <string>
#include <vector>

#include "ostro/page/numbers/bins.h"
#include "ostro/page/terminal/canvas.h"

namespace ostro::page {

// The curves by step with numbers at the axes, and below a line for each: its sign, name, first, last and
// least value, as far as they fit. The first curve without dots is a line, all others are made of signs. No
// line is longer than the terminal is wide (at least 24 columns are used). Without a value it says so.
std::string text_plot(const std::vector<Curve>& curves, int64_t first_step, int64_t last_step,
                      const Terminal& terminal);

}  // namespace ostro::page
