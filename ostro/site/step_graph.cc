#include "ostro/site/step_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/html.h"
#include "ostro/site/run_extras.h"

namespace ostro::site {

using lab::Action;

namespace {

constexpr size_t kMostSteps = 200;
constexpr int kColumn = 210, kRow = 38, kBoxWidth = 170, kBoxHeight = 26;

const char* colour(Action action) {
  switch (action) {
    case Action::kSkip: return "#1f7a44";
    case Action::kFail: return "#b3261e";
    case Action::kRun:
    case Action::kResume: return "#2f6db5";
    default: return "#777f8a";
  }
}

// The beginning of a name that fits into a box: whole characters of UTF-8.
std::string short_name(const std::string& name) {
  std::string out;
  size_t characters = 0;
  for (const char c : name) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && ++characters > 24) return out + "\xE2\x80\xA6";
    out += c;
  }
  return out;
}

}  // namespace

std::string step_graph_svg(const LabFacts& facts) {
  const lab::LabState& state = facts.state;
  if (state.steps.size() > kMostSteps) return "";
  std::map<std::string, std::pair<int, int>> places;  // name -> column, row
  std::map<int, int> used;
  std::string lines, boxes;
  for (const lab::StepState& s : state.steps) {
    int column = 0;
    for (const auto& [unused, input] : s.step->inputs) column = std::max(column, places.at(input).first + 1);
    const int row = used[column]++;
    places[s.step->name] = {column, row};
    const int x = 10 + column * kColumn, y = 10 + row * kRow;
    for (const auto& [unused, input] : s.step->inputs) {
      const auto& [from_column, from_row] = places.at(input);
      const int from_x = 10 + from_column * kColumn + kBoxWidth,
                from_y = 10 + from_row * kRow + kBoxHeight / 2;
      lines +=
          fmt::format("<path d=\"M{0} {1}C{4} {1} {5} {3} {2} {3}\" stroke=\"#b9bec5\" fill=\"none\"/>\n",
                      from_x, from_y, x, y + kBoxHeight / 2, from_x + 20, x - 20);
    }
    const RunFacts* run = facts.find(s.step->name);
    const std::string flops = run == nullptr ? "" : flops_text(*run);
    boxes += fmt::format(
        "<g><title>{}: {}{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\" "
        "fill=\"#fcfcfb\" stroke=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
        html_escaped(s.step->name), lab::action_name(s.action), flops.empty() ? "" : ", " + flops, x, y,
        kBoxWidth, kBoxHeight, colour(s.action), x + 8, y + 18, html_escaped(short_name(s.step->name)));
  }
  int columns = 0, rows = 0;
  for (const auto& [column, count] : used) {
    columns = std::max(columns, column + 1);
    rows = std::max(rows, count);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" class=\"graph\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"12\" "
      "fill=\"#1d2127\"><title>the steps and what they need</title>\n{}{}</svg>\n",
      columns * kColumn - (kColumn - kBoxWidth) + 20, rows * kRow + 10, lines, boxes);
}

}  // namespace ostro::site
