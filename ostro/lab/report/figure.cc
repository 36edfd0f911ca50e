#include "ostro/lab/report/figure.h"

#include <fmt/format.h>

#include "ostro/base/html.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::lab {
namespace {

// In units of the SVG: the whole, and the rectangle of the lines within it.
constexpr double kWidth = 720, kLeft = 64, kRight = 700, kTop = 40, kBottom = 330;
constexpr const char* kColours[] = {"#2f6db5", "#d9661f", "#2e8b57", "#8e5bb5",
                                    "#b08a00", "#c2437c", "#22889b", "#777f8a"};

std::string text(double x, double y, const char* anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     html_escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\" fill=\"none\"/>\n", x1, y1, x2,
                     y2, colour);
}

}  // namespace

std::string line_chart_svg(const std::string& title, const std::string& x, const std::string& y,
                           const std::vector<Line>& lines, bool shows_title) {
  std::vector<double> xs, ys;
  for (const Line& l : lines)
    for (const auto* points : {&l.points, &l.marks})
      for (const auto& [at, value] : *points) {
        xs.push_back(at);
        ys.push_back(value);
      }
  const page::Range across = page::range_of(xs), up = page::range_of(ys);
  const auto place_x = [&](double v) { return kLeft + (kRight - kLeft) * across.place(v); };
  const auto place_y = [&](double v) { return kBottom - (kBottom - kTop) * up.place(v); };
  std::string body = shows_title ? text(kLeft, 22, "start", title) : "";
  const std::vector<double> x_ticks = page::ticks(across, 7), y_ticks = page::ticks(up, 6);
  const std::vector<std::string> x_texts = page::tick_texts(x_ticks), y_texts = page::tick_texts(y_ticks);
  for (size_t i = 0; i < y_ticks.size(); ++i) {
    body += line(kLeft, place_y(y_ticks[i]), kRight, place_y(y_ticks[i]), "#dfe2e6");
    body += text(kLeft - 8, place_y(y_ticks[i]) + 4, "end", y_texts[i]);
  }
  for (size_t i = 0; i < x_ticks.size(); ++i) {
    body += line(place_x(x_ticks[i]), kBottom, place_x(x_ticks[i]), kBottom + 5, "#626a75");
    body += text(place_x(x_ticks[i]), kBottom + 20, "middle", x_texts[i]);
  }
  body += line(kLeft, kBottom, kRight, kBottom, "#626a75");
  body += text((kLeft + kRight) / 2, kBottom + 40, "middle", x) + text(kLeft, kTop - 4, "start", y);
  double below = kBottom + 64;
  for (size_t i = 0; i < lines.size(); ++i, below += 20) {
    const char* colour = kColours[i % std::size(kColours)];
    const char* dashes = i >= std::size(kColours) ? " stroke-dasharray=\"5 3\"" : "";
    std::string d;
    for (const auto& [at, value] : lines[i].points)
      d += fmt::format("{}{:.2f} {:.2f}", d.empty() ? "M" : "L", place_x(at), place_y(value));
    body += fmt::format(
        "<path d=\"{}\" stroke=\"{}\"{} stroke-width=\"1.6\" stroke-linejoin=\"round\" fill=\"none\"/>\n", d,
        colour, dashes);
    for (const auto& [at, value] : lines[i].marks)
      body += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3.5\" fill=\"{}\"/>\n", place_x(at),
                          place_y(value), colour);
    body +=
        fmt::format("<path d=\"M{0:.1f} {1:.1f}h24\" stroke=\"{2}\"{3} stroke-width=\"2\" fill=\"none\"/>\n",
                    kLeft, below - 4, colour, dashes);
    body += text(kLeft + 32, below, "start", lines[i].name);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\" fill=\"#1d2127\">\n<title>{2}</title>\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "fill=\"#fcfcfb\"/>\n{3}</svg>\n",
      kWidth, below, html_escaped(title), body);
}

}  // namespace ostro::lab
