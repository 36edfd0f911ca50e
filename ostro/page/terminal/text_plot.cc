#include "ostro/page/terminal/text_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/page/numbers/axis.h"

namespace ostro::page {
namespace {

constexpr int kPlotRows = 16, kLeastColumns = 24, kBetweenSigns = 3, kLeastGutter = 4, kLeastWidth = 12;

// Characters of UTF-8.
size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Replaces control characters, which a terminal would obey.
std::string harmless(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string cut_to(std::string text, size_t limit) {
  while (characters(text) > limit) {
    while ((text.back() & 0xC0) == 0x80) text.pop_back();
    text.pop_back();
  }
  return text;
}

struct Axes {
  Range steps, values;
  int gutter = kLeastGutter;  // columns of the numbers on the left
};

void draw(const std::vector<Curve>& curves, const Axes& axes, size_t line, Canvas& canvas) {
  for (size_t i = 0; i < curves.size(); ++i) {
    std::vector<Canvas::Place> way;
    for (const Bin& bin : curves[i].values->all())
      way.push_back({axes.steps.place(bin.middle()), axes.values.place(bin.mean())});
    if (i == line && way.size() > 1) {
      canvas.line(way, i);
      continue;
    }
    // Some columns apart, so that the other curves are still seen.
    int before = -kBetweenSigns;
    for (const Canvas::Place& place : way) {
      if (canvas.column_of(place.x) - before < kBetweenSigns) continue;
      before = canvas.column_of(place.x);
      canvas.mark(place, i);
    }
  }
}

// The numbers below the axis, each under its place; one that would touch the number before it is left out.
std::string step_numbers(const std::vector<double>& ticks, const Axes& axes, const Canvas& canvas,
                         int columns) {
  std::string out;
  const std::vector<std::string> texts = tick_texts(ticks);
  for (size_t i = 0; i < ticks.size(); ++i) {
    const int width = static_cast<int>(texts[i].size());
    if (width > columns) continue;
    const int at = std::clamp(canvas.column_of(axes.steps.place(ticks[i])) - width / 2, 0, columns - width);
    const auto place = static_cast<size_t>(at);
    if (!out.empty() && place < out.size() + 2) continue;
    out += std::string(place - out.size(), ' ') + texts[i];
  }
  return out;
}

std::string legend(const std::vector<Curve>& curves, size_t line, const Terminal& terminal, int columns) {
  std::string out;
  int64_t widest = 1, left_out = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    const Bins& bins = *curves[i].values;
    left_out += bins.not_finite();
    widest = std::max(widest, bins.width());
    if (bins.empty()) continue;
    const bool is_line = i == line && bins.all().size() > 1;
    const auto last = bins.last(), least = bins.least();
    std::string text = cut_to(harmless(curves[i].name), static_cast<size_t>(columns) - 2);
    const char* before = "  ";
    // A number that does not fit is left out whole: half of it would be another number.
    for (const auto& [value, what] : {std::pair{bins.first(), ""}, {last, ""}, {least, "least "}}) {
      const std::string more =
          fmt::format("{}{}{} at step {}", before, what, short_number(value.value), value.step);
      if (characters(text) + more.size() + 2 > static_cast<size_t>(columns)) break;
      text += more;
      before = ", ";
    }
    out += curve_sign(terminal, i, is_line) + " " + text + "\n";
  }
  if (widest > 1)
    out +=
        cut_to(fmt::format("a point is the mean of up to {} steps", widest), static_cast<size_t>(columns)) +
        "\n";
  if (left_out > 0)
    out += cut_to(fmt::format("{} values are not finite and not shown", left_out),
                  static_cast<size_t>(columns)) +
           "\n";
  return out;
}

}  // namespace

std::string text_plot(const std::vector<Curve>& curves, int64_t first_step, int64_t last_step,
                      const Terminal& terminal) {
  const int columns = std::max(terminal.columns, kLeastColumns);
  const size_t line = static_cast<size_t>(
      std::find_if(curves.begin(), curves.end(), [](const Curve& c) { return !c.dots; }) - curves.begin());
  std::vector<double> means;
  for (const Curve& curve : curves)
    for (const Bin& bin : curve.values->all()) means.push_back(bin.mean());
  const std::string below = legend(curves, line, terminal, columns);
  if (means.empty()) return "no values yet\n" + below;

  Axes axes{{static_cast<double>(first_step), static_cast<double>(std::max(last_step, first_step + 1))},
            range_of(means)};
  const std::vector<double> values = ticks(axes.values, kPlotRows / 3);
  std::vector<std::string> texts = tick_texts(values);
  for (std::string& text : texts) {
    const int wide = static_cast<int>(text.size());
    // A number that leaves no room for the curves is left out: half of it would be another one.
    if (wide > columns - kLeastWidth - 2)
      text.clear();
    else
      axes.gutter = std::max(axes.gutter, wide);
  }
  const int width = columns - axes.gutter - 2;
  Canvas canvas(terminal, width, kPlotRows);
  draw(curves, axes, line, canvas);

  std::string out;
  for (int row = 0; row < kPlotRows; ++row) {
    std::string text;
    for (size_t i = 0; i < values.size(); ++i)
      if (canvas.row_of(axes.values.place(values[i])) == row) text = texts[i];
    const char* axis = terminal.ascii ? (text.empty() ? "|" : "+") : (text.empty() ? "│" : "┤");
    out += fmt::format("{:>{}} {}{}\n", text, axes.gutter, axis, canvas.row(row));
  }
  const std::vector<double> steps = whole_ticks(axes.steps, std::max(width / 8, 2));
  std::vector<bool> ticked(static_cast<size_t>(width));
  for (const double step : steps)
    ticked[static_cast<size_t>(canvas.column_of(axes.steps.place(step)))] = true;
  out += std::string(static_cast<size_t>(axes.gutter) + 1, ' ') + (terminal.ascii ? "+" : "└");
  for (const bool tick : ticked) out += terminal.ascii ? (tick ? "+" : "-") : (tick ? "┬" : "─");
  out += fmt::format("\n{:>{}}  {}\n", "step", axes.gutter, step_numbers(steps, axes, canvas, width));
  return out + below;
}

}  // namespace ostro::page
