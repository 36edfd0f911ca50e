// chart_html: one chart of the page: inline SVG, whose curves need no script, with labels that keep their
// size.
#pragma once

#include <string>
#include <vector>

#include "ostro/page/numbers/axis.h"
#include "ostro/page/numbers/bins.h"

namespace ostro::page {

// A value to compare the curves with: a level line.
struct Level {
  std::string label;
  double value = 0;
};

struct Chart {
  std::string title;
  std::string unit;  // of the values; may be empty
  std::vector<Curve> curves;
  int64_t first_step = 1, last_step = 1;  // the width of the chart; values outside are not shown
  Format format = Format::kPlain;
  std::vector<Level> levels = {};
  std::vector<int64_t> resumes = {};  // steps after which the run was resumed
  bool bands = true;                  // the range of the values of each point, behind the curve
};

// The number of colours. Further curves have the same colours again, dashed.
inline constexpr size_t kCurveColours = 8;

// Returns a <figure> with data-* attributes that describe its paths (docs/reference/formats/run_directory.md,
// "report.html"); empty when no curve has a value within the steps. A pure function.
std::string chart_html(const Chart& chart);

}  // namespace ostro::page
