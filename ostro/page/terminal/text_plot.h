// text_plot: draws curves with characters, for a terminal, a log or a mail. A pure function.
#pragma once

#include <string>
#include <vector>

#include "ostro/page/numbers/bins.h"
#include "ostro/page/terminal/canvas.h"

namespace ostro::page {

// Returns the curves by step with numbers at the axes, and below them a line for each curve: its sign, name,
// first, last and least value, as far as they fit. The first curve without dots is drawn as a line, all
// others with signs. No line is longer than the terminal is wide (but at least 24 columns). When there is no
// value, the text says so.
std::string text_plot(const std::vector<Curve>& curves, int64_t first_step, int64_t last_step,
                      const Terminal& terminal);

}  // namespace ostro::page
