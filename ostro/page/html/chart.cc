#include "ostro/page/html/chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/html.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::page {
namespace {

// The SVG is stretched to the figure's size, so its units are parts of that: 1000 each way, y downwards.
constexpr double kSize = 1000;

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

// The bins of a curve within the chart's steps.
std::vector<Bin> shown(const Curve& curve, const Chart& chart) {
  std::vector<Bin> out;
  for (const Bin& bin : curve.values->all())
    if (bin.middle() >= static_cast<double>(chart.first_step) &&
        bin.middle() <= static_cast<double>(chart.last_step))
      out.push_back(bin);
  return out;
}

struct Frame {
  Range steps, values;

  std::string point(double step, double value) const {
    return coordinate(kSize * steps.place(step)) + " " + coordinate(kSize * (1 - values.place(value)));
  }
};

std::string line_path(const Frame& frame, const std::vector<Bin>& bins) {
  std::string d;
  for (const Bin& bin : bins) d += (d.empty() ? "M" : "L") + frame.point(bin.middle(), bin.mean());
  return d;
}

// Round ends of lines without length: dots that stay round however the SVG is stretched.
std::string dots_path(const Frame& frame, const std::vector<Bin>& bins) {
  std::string d;
  for (const Bin& bin : bins) d += "M" + frame.point(bin.middle(), bin.mean()) + "h0";
  return d;
}

// From the least to the greatest value of every bin.
std::string band_path(const Frame& frame, const std::vector<Bin>& bins) {
  std::string d;
  for (const Bin& bin : bins) d += (d.empty() ? "M" : "L") + frame.point(bin.middle(), bin.most);
  for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin) d += "L" + frame.point(bin->middle(), bin->least);
  return d + "Z";
}

std::string grid(const Frame& frame, const std::vector<double>& values) {
  std::string d;
  for (const double value : values)
    d += fmt::format("M0 {}H{}", coordinate(kSize * (1 - frame.values.place(value))), kSize);
  return fmt::format("<path class=\"grid\" d=\"{}\"/>", d);
}

std::string labels(const Frame& frame, const std::vector<double>& values, const std::vector<double>& steps) {
  std::string out;
  const std::vector<std::string> value_texts = tick_texts(values), step_texts = tick_texts(steps);
  for (size_t i = 0; i < values.size(); ++i)
    out += fmt::format("<span class=\"y\" style=\"top:{}%\">{}</span>",
                       coordinate(100 * (1 - frame.values.place(values[i]))), value_texts[i]);
  for (size_t i = 0; i < steps.size(); ++i)
    out += fmt::format("<span class=\"x\" style=\"left:{}%\">{}</span>",
                       coordinate(100 * frame.steps.place(steps[i])), step_texts[i]);
  return out;
}

// The values that the script shows under the pointer: [first step, last step, mean, least, most] of every
// bin.
std::string points_json(const std::vector<Bin>& bins) {
  std::string out = "[";
  for (const Bin& bin : bins) {
    out += out.size() > 1 ? "," : "";
    out += bin.count == 1 ? fmt::format("[{},{},{:.6g}]", bin.first, bin.last, bin.mean())
                          : fmt::format("[{},{},{:.6g},{:.4g},{:.4g}]", bin.first, bin.last, bin.mean(),
                                        bin.least, bin.most);
  }
  return out + "]";
}

}  // namespace

std::string chart_html(const Chart& chart) {
  std::vector<std::vector<Bin>> all;
  std::vector<double> means;
  for (const Curve& curve : chart.curves) {
    all.push_back(shown(curve, chart));
    for (const Bin& bin : all.back()) means.push_back(bin.mean());
  }
  if (means.empty()) return "";
  // A little room, so that the first and last dot are whole.
  const auto first = static_cast<double>(chart.first_step), last = static_cast<double>(chart.last_step);
  const double room = std::max(0.5, 0.015 * (last - first));
  const Frame frame{{first - room, last + room}, range_of(means)};

  std::string legend, paths;
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    const std::vector<Bin>& bins = all[i];
    if (bins.empty()) continue;
    const size_t colour = std::min(i, kCurveColours - 1);
    legend += fmt::format("<span class=\"key c{}{}\">{}</span>", colour, curve.dots ? " dots" : "",
                          html_escaped(curve.name));
    const std::string attributes = fmt::format("data-name=\"{}\"", html_escaped(curve.name));
    if (curve.values->width() > 1)
      paths += fmt::format("<path class=\"band c{}\" d=\"{}\"/>", colour, band_path(frame, bins));
    if (bins.size() > 1)
      paths += fmt::format("<path class=\"line c{}\" {} data-points=\"{}\" d=\"{}\"/>", colour, attributes,
                           points_json(bins), line_path(frame, bins));
    if (curve.dots || bins.size() == 1)
      paths += fmt::format("<path class=\"dot c{}\" {}{} d=\"{}\"/>", colour, attributes,
                           bins.size() == 1 ? fmt::format(" data-points=\"{}\"", points_json(bins)) : "",
                           dots_path(frame, bins));
  }
  const std::vector<double> values = ticks(frame.values, 6), steps = whole_ticks(frame.steps, 6);
  if (chart.curves.size() == 1) legend.clear();  // the title says it
  return fmt::format(
      "<figure data-steps=\"{} {}\" data-values=\"{:.17g} {:.17g}\"><figcaption><b>{}</b><small>{}</small>"
      "<span class=\"legend\">{}</span></figcaption>\n"
      "<div class=\"plot\"><svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{}\">{}{}</svg>{}</div></figure>\n",
      frame.steps.low, frame.steps.high, frame.values.low, frame.values.high, html_escaped(chart.title),
      html_escaped(chart.unit), legend, kSize, kSize, html_escaped(chart.title), grid(frame, values), paths,
      labels(frame, values, steps));
}

}  // namespace ostro::page
