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

std::string labels(const Frame& frame, const std::vector<double>& values, const std::vector<double>& steps,
                   Format format) {
  std::string out;
  const std::vector<std::string> value_texts = tick_texts(values, format), step_texts = tick_texts(steps);
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

const char* name_of(Format format) {
  return format == Format::kBytes ? "bytes" : format == Format::kPercent ? "percent" : "plain";
}

// Lines for all the chart's curves: levels to compare with, and where the run was resumed.
std::string guides(const Frame& frame, const Chart& chart) {
  std::string out;
  for (const Level& level : chart.levels)
    out += fmt::format("<path class=\"level\" data-level=\"{:.17g}\" d=\"M0 {}H{}\"/>", level.value,
                       coordinate(kSize * (1 - frame.values.place(level.value))), kSize);
  for (const int64_t step : chart.resumes)
    if (step >= chart.first_step && step < chart.last_step)
      out += fmt::format("<path class=\"resume\" data-after=\"{}\" d=\"M{} 0V{}\"/>", step,
                         coordinate(kSize * frame.steps.place(static_cast<double>(step) + 0.5)), kSize);
  return out;
}

// One curve: its key in the legend and its paths.
struct Drawn {
  std::string key, paths;
};
Drawn drawn(const Frame& frame, const Chart& chart, size_t place, const std::vector<Bin>& bins) {
  const Curve& curve = chart.curves[place];
  // A run has the same colour in all charts, also where another run has no curve.
  const auto of_run = [&](const Curve& other) { return other.run == curve.run; };
  const size_t index =
      curve.run + static_cast<size_t>(std::count_if(
                      chart.curves.begin(), chart.curves.begin() + static_cast<int64_t>(place), of_run));
  const std::string classes =
      fmt::format("c{}{}", index % kCurveColours, index >= kCurveColours ? " again" : "");
  const std::string label = html_escaped(curve.label.empty() ? curve.name : curve.label);
  Drawn out;
  out.key = fmt::format("<button type=\"button\" class=\"key {}{}\" data-curve=\"{}\">{}</button>", classes,
                        curve.dots ? " dots" : "", index, label);
  const std::string attributes = fmt::format("data-name=\"{}\" data-curve=\"{}\" data-run=\"{}\"",
                                             html_escaped(curve.name), index, curve.run);
  if (chart.bands && curve.values->width() > 1)
    out.paths += fmt::format("<path class=\"band {}\" data-curve=\"{}\" d=\"{}\"/>", classes, index,
                             band_path(frame, bins));
  if (bins.size() > 1)
    out.paths += fmt::format("<path class=\"line {}\" {} data-points=\"{}\" d=\"{}\"/>", classes, attributes,
                             points_json(bins), line_path(frame, bins));
  if (curve.dots || bins.size() == 1)
    out.paths += fmt::format("<path class=\"dot {}\" {}{} d=\"{}\"/>", classes, attributes,
                             bins.size() == 1 ? fmt::format(" data-points=\"{}\"", points_json(bins)) : "",
                             dots_path(frame, bins));
  return out;
}

// All values that the chart has to show.
Range range_of_values(const Chart& chart, const std::vector<std::vector<Bin>>& all) {
  std::vector<double> means, leasts, mosts;
  for (size_t i = 0; i < all.size(); ++i)
    for (const Bin& bin : all[i]) {
      means.push_back(bin.mean());
      if (!chart.bands || chart.curves[i].values->width() == 1) continue;
      leasts.push_back(bin.least);
      mosts.push_back(bin.most);
    }
  for (const Level& level : chart.levels) means.push_back(level.value);
  return range_with_bands(std::move(means), std::move(leasts), std::move(mosts));
}

}  // namespace

std::string chart_html(const Chart& chart) {
  std::vector<std::vector<Bin>> all;
  bool any = false;
  for (const Curve& curve : chart.curves) {
    all.push_back(shown(curve, chart));
    any = any || !all.back().empty();
  }
  if (!any) return "";
  // A little room, so that the first and last dot are whole.
  const auto first = static_cast<double>(chart.first_step), last = static_cast<double>(chart.last_step);
  const double room = std::max(0.5, 0.015 * (last - first));
  const Frame frame{{first - room, last + room}, range_of_values(chart, all)};

  std::string legend, paths;
  size_t keys = 0;
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    if (all[i].empty()) continue;
    const Drawn one = drawn(frame, chart, i, all[i]);
    legend += one.key;
    paths += one.paths;
    ++keys;
  }
  if (keys == 1 && chart.levels.empty()) legend.clear();  // the title says it
  for (const Level& level : chart.levels)
    legend += fmt::format("<span class=\"key level\">{}</span>", html_escaped(level.label));
  const std::vector<double> values = ticks(frame.values, 6), steps = whole_ticks(frame.steps, 6);
  return fmt::format(
      "<figure data-steps=\"{} {}\" data-values=\"{:.17g} {:.17g}\" data-format=\"{}\"><figcaption><b>{}</b>"
      "<small>{}</small><span class=\"legend\">{}</span></figcaption>\n"
      "<div class=\"plot\"><svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{}\">{}{}{}</svg>{}</div></figure>\n",
      frame.steps.low, frame.steps.high, frame.values.low, frame.values.high, name_of(chart.format),
      html_escaped(chart.title), html_escaped(chart.unit), legend, kSize, kSize, html_escaped(chart.title),
      grid(frame, values), guides(frame, chart), paths, labels(frame, values, steps, chart.format));
}

}  // namespace ostro::page
