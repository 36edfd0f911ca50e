// step_graph_svg: the steps of a lab as boxes, from their inputs on the left to what needs them on the right.
// A pure function.
#pragma once

#include <string>

#include "ostro/lab/drive/driver.h"

namespace ostro::site {

// Of a lab with more than 200 steps: an empty text; it would be too large to read.
std::string step_graph_svg(const lab::LabState& state);

}  // namespace ostro::site
