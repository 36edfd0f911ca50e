// chart_svg: a figure with lines, points, bands or bars, in one panel or several beside each other, as a text
// of SVG that needs nothing else. A pure function: the same numbers give the same bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/experiment/plan/query.h"

namespace ostro::lab {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // finite, in the order of the line
  // Single points, in the colour of the line and under no name of their own.
  std::vector<std::pair<double, double>> marks = {};
  // Low and high of each of `points`; empty: none. A band between them, or of points and bars a whisker.
  std::vector<std::pair<double, double>> spans = {};
};

// All panels have the same axes, and a name has the same colour in each.
struct Panel {
  std::string name;
  std::vector<Line> lines;
};

struct Chart {
  std::string title, x, y;  // x and y name the axes
  FigureMarks marks = FigureMarks::kLines;
  // Of bars: the words under the places. The x of a point is the number of its place, from 0.
  std::vector<std::string> places = {};
  std::vector<Panel> panels;  // a single one has no name above it
  // The title stands above the lines, or only in the element that readers aloud have.
  bool shows_title = true;
};

// The colours of more than eight names come again: dashed, hollow or paler. Texts are escaped.
std::string chart_svg(const Chart& chart);

// A chart of lines in one panel.
std::string line_chart_svg(const std::string& title, const std::string& x, const std::string& y,
                           const std::vector<Line>& lines, bool shows_title = true);

}  // namespace ostro::lab
