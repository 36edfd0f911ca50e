// line_chart_svg: a figure with lines, as a text of SVG that needs nothing else. A pure function.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ostro::lab {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // finite, in the order of the line
  // Single points, in the colour of the line and under no name of their own.
  std::vector<std::pair<double, double>> marks = {};
};

// `x` and `y` name the axes. The colours of more than eight lines come again, dashed. Names are escaped.
// The title stands above the lines, or only in the element that readers aloud have.
std::string line_chart_svg(const std::string& title, const std::string& x, const std::string& y,
                           const std::vector<Line>& lines, bool shows_title = true);

}  // namespace ostro::lab
