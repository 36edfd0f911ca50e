// step_graph_svg: the steps of a lab as boxes, from their inputs on the left to what needs them on the right.
// A pure function.
#pragma once

#include <string>

#include "ostro/site/lab_facts.h"

namespace ostro::site {

// A box says its step's state, and of a run the operations. Of a lab with more than 200 steps: an empty text;
// it would be too large to read.
std::string step_graph_svg(const LabFacts& facts);

}  // namespace ostro::site
