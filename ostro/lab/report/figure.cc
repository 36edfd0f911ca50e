#include "ostro/lab/report/figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/html.h"
#include "ostro/page/numbers/axis.h"

namespace ostro::lab {
namespace {

// In units of the SVG: the whole, and the rectangle of the lines within it.
constexpr double kWidth = 720, kLeft = 64, kRight = 700, kTop = 40, kBottom = 330;
// Of several panels: what is between two, and the height of one; and the part of a place that bars fill.
constexpr double kBetween = 28, kPanelHeight = 170, kPanelGap = 34, kFilled = 0.8;
constexpr double kCharacter = 7;  // the mean width of a letter
// Of words that are turned, since they do not fit under their places: at most and at least so many letters,
// and the part of their length by which they go down and to the left.
constexpr size_t kMostTurned = 20, kLeastTurned = 8;
constexpr double kTurned = 0.71;
constexpr const char* kColours[] = {"#2f6db5", "#d9661f", "#2e8b57", "#8e5bb5",
                                    "#b08a00", "#c2437c", "#22889b", "#777f8a"};
constexpr const char* kInk = "#626a75";

struct Frame {
  double left, right, top, bottom;
};

std::string text(double x, double y, const char* anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     html_escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\" fill=\"none\"/>\n", x1, y1, x2,
                     y2, colour);
}

// A text of at most `most` characters of UTF-8: of a longer one beginning and end, since the names of steps
// differ there.
std::string cut_in_middle(const std::string& words, size_t most) {
  std::vector<size_t> begins;
  for (size_t i = 0; i < words.size(); ++i)
    if ((static_cast<unsigned char>(words[i]) & 0xC0) != 0x80) begins.push_back(i);
  if (begins.size() <= most || most < 3) return words;
  const size_t first = (most - 1) / 3, last = most - 1 - first;
  return words.substr(0, begins[first]) + "\xE2\x80\xA6" + words.substr(begins[begins.size() - last]);
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    std::vector<double> xs, ys;
    for (const Panel& panel : chart.panels)
      for (const Line& l : panel.lines) {
        if (std::find(names_.begin(), names_.end(), l.name) == names_.end()) names_.push_back(l.name);
        for (const auto* points : {&l.points, &l.marks})
          for (const auto& [at, value] : *points) {
            xs.push_back(at);
            ys.push_back(value);
          }
        for (const auto& [low, high] : l.spans) ys.insert(ys.end(), {low, high});
      }
    across_ = page::range_of(xs), up_ = page::range_of(ys);
    if (has_bars()) set_bar_ranges(ys);
    x_ticks_ = page::ticks(across_, chart.panels.size() > 1 ? 4 : 7);
    y_ticks_ = page::ticks(up_, chart.panels.size() > 1 ? 4 : 6);
  }

  std::string svg() {
    std::string body = chart_.shows_title ? text(kLeft, 22, "start", chart_.title) : "";
    const bool is_single = chart_.panels.size() <= 1;
    double bottom = kBottom;
    if (is_single) {
      body += axes({kLeft, kRight, kTop, kBottom}, true, true);
    } else {
      body += panels(bottom);
    }
    const double x_texts = turned_height();
    body += text((kLeft + kRight) / 2, bottom + 40 + x_texts, "middle", chart_.x) +
            text(kLeft, kTop - 4, "start", chart_.y);
    double below = bottom + 64 + x_texts;
    const bool is_nameless = names_.size() == 1 && names_[0].empty();
    for (size_t i = 0; i < names_.size(); ++i) {
      if (is_single) body += series(chart_.panels[0], i, {kLeft, kRight, kTop, kBottom});
      if (is_nameless) continue;
      body += key(i, below);
      below += 20;
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
        "font-family=\"sans-serif\" "
        "font-size=\"13\" fill=\"#1d2127\">\n<title>{2}</title>\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "fill=\"#fcfcfb\"/>\n{3}</svg>\n",
        kWidth, below, html_escaped(chart_.title), body);
  }

 private:
  bool has_bars() const { return chart_.marks == FigureMarks::kBars; }
  double x_of(double v, const Frame& f) const { return f.left + (f.right - f.left) * across_.place(v); }
  double y_of(double v, const Frame& f) const { return f.bottom - (f.bottom - f.top) * up_.place(v); }
  static const char* colour(size_t i) { return kColours[i % std::size(kColours)]; }
  static bool comes_again(size_t i) { return i >= std::size(kColours); }

  // Bars stand on 0, a place has the width 1.
  void set_bar_ranges(std::vector<double> ys) {
    ys.push_back(0);
    const auto [low, high] = std::minmax_element(ys.begin(), ys.end());
    up_ = *low < *high ? page::range_of(ys) : page::Range{0, 1};
    if (*low == 0) up_.low = 0;
    if (*high == 0 && *low < 0) up_.high = 0;
    across_ = {-0.5, static_cast<double>(chart_.places.size()) - 0.5};
    const size_t columns = column_count();
    const double place = (kRight - kLeft - kBetween * static_cast<double>(columns - 1)) /
                         static_cast<double>(columns * chart_.places.size());
    for (const std::string& word : chart_.places)
      is_turned_ |= static_cast<double>(word.size()) * kCharacter > place;
    const double room = (kLeft + place / 2) / (kTurned * kCharacter);
    turned_letters_ = std::clamp(static_cast<size_t>(room), kLeastTurned, kMostTurned);
  }

  size_t column_count() const {
    return std::min<size_t>(chart_.panels.size(), chart_.panels.size() <= 4 ? 2 : 3);
  }
  double turned_height() const {
    return is_turned_ ? kTurned * kCharacter * static_cast<double>(turned_letters_) : 0;
  }

  // What stands beside and below a panel.
  std::string axes(const Frame& f, bool has_left, bool has_below) const {
    std::string out;
    const std::vector<std::string> y_texts = page::tick_texts(y_ticks_);
    for (size_t i = 0; i < y_ticks_.size(); ++i) {
      out += line(f.left, y_of(y_ticks_[i], f), f.right, y_of(y_ticks_[i], f), "#dfe2e6");
      if (has_left) out += text(f.left - 8, y_of(y_ticks_[i], f) + 4, "end", y_texts[i]);
    }
    if (has_bars()) {
      if (has_below) out += place_words(f);
      return out + line(f.left, y_of(0, f), f.right, y_of(0, f), kInk);
    }
    const std::vector<std::string> x_texts = page::tick_texts(x_ticks_);
    for (size_t i = 0; i < x_ticks_.size(); ++i) {
      out += line(x_of(x_ticks_[i], f), f.bottom, x_of(x_ticks_[i], f), f.bottom + 5, kInk);
      if (has_below) out += text(x_of(x_ticks_[i], f), f.bottom + 20, "middle", x_texts[i]);
    }
    return out + line(f.left, f.bottom, f.right, f.bottom, kInk);
  }

  std::string place_words(const Frame& f) const {
    std::string out;
    for (size_t i = 0; i < chart_.places.size(); ++i) {
      const double x = x_of(static_cast<double>(i), f), y = f.bottom + 18;
      out += !is_turned_ ? text(x, y, "middle", chart_.places[i])
                         : fmt::format(
                               "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"end\" "
                               "transform=\"rotate(-45 {0:.1f} {1:.1f})\">{2}</text>\n",
                               x + 4, y - 2, html_escaped(cut_in_middle(chart_.places[i], turned_letters_)));
    }
    return out;
  }

  // Panels from the left to the right and downwards; `bottom` is that of the last row.
  std::string panels(double& bottom) const {
    const size_t columns = column_count(), count = chart_.panels.size();
    const double width = (kRight - kLeft + kBetween) / static_cast<double>(columns) - kBetween;
    std::string out;
    for (size_t i = 0; i < count; ++i) {
      const auto column = static_cast<double>(i % columns), row = static_cast<double>(i / columns);
      Frame f{};
      f.left = kLeft + column * (width + kBetween), f.right = f.left + width;
      f.top = kTop + 24 + row * (kPanelHeight + kPanelGap), f.bottom = f.top + kPanelHeight;
      bottom = f.bottom;
      out += text(f.left, f.top - 6, "start",
                  cut_in_middle(chart_.panels[i].name, static_cast<size_t>(width / kCharacter)));
      out += axes(f, i % columns == 0, i + columns >= count);
      for (size_t s = 0; s < names_.size(); ++s) out += series(chart_.panels[i], s, f);
    }
    return out;
  }

  std::string series(const Panel& panel, size_t i, const Frame& f) const {
    std::string out;
    for (const Line& l : panel.lines) {
      if (l.name != names_[i]) continue;
      if (chart_.marks == FigureMarks::kBands) out += band(l, i, f);
      if (has_bars())
        out += bars(l, i, f);
      else if (chart_.marks == FigureMarks::kPoints)
        out += whiskers(l, f, 0) + circles(l.points, i, f);
      else
        out += curve(l, i, f);
      out += circles(l.marks, i, f);
    }
    return out;
  }

  std::string curve(const Line& l, size_t i, const Frame& f) const {
    std::string d;
    for (const auto& [at, value] : l.points)
      d += fmt::format("{}{:.2f} {:.2f}", d.empty() ? "M" : "L", x_of(at, f), y_of(value, f));
    return fmt::format(
        "<path d=\"{}\" stroke=\"{}\"{} stroke-width=\"1.6\" stroke-linejoin=\"round\" fill=\"none\"/>\n", d,
        colour(i), dashes(i));
  }

  std::string band(const Line& l, size_t i, const Frame& f) const {
    std::string there, back;
    for (size_t p = 0; p < l.points.size(); ++p) {
      const double x = x_of(l.points[p].first, f);
      there += fmt::format("{}{:.2f} {:.2f}", p == 0 ? "M" : "L", x, y_of(l.spans[p].second, f));
      back = fmt::format("L{:.2f} {:.2f}", x, y_of(l.spans[p].first, f)) + back;
    }
    return fmt::format("<path d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.18\"/>\n", there, back, colour(i));
  }

  std::string circles(const std::vector<std::pair<double, double>>& points, size_t i, const Frame& f) const {
    const bool is_hollow = chart_.marks == FigureMarks::kPoints && comes_again(i);
    std::string out;
    for (const auto& [at, value] : points)
      out += is_hollow
                 ? fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\" stroke=\"{}\" fill=\"none\"/>\n",
                               x_of(at, f), y_of(value, f), colour(i))
                 : fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3.5\" fill=\"{}\"/>\n", x_of(at, f),
                               y_of(value, f), colour(i));
    return out;
  }

  // From low to high of each point, `aside` of its x.
  std::string whiskers(const Line& l, const Frame& f, double aside) const {
    std::string d;
    for (size_t p = 0; p < l.spans.size(); ++p)
      d += fmt::format("M{0:.2f} {1:.2f}V{2:.2f}m-3 0h6m-3 0V{1:.2f}m-3 0h6",
                       x_of(l.points[p].first + aside, f), y_of(l.spans[p].first, f),
                       y_of(l.spans[p].second, f));
    return d.empty() ? d : fmt::format("<path d=\"{}\" stroke=\"#1d2127\" fill=\"none\"/>\n", d);
  }

  // The bars of a name stand beside those of the others.
  std::string bars(const Line& l, size_t i, const Frame& f) const {
    const double width = kFilled / static_cast<double>(names_.size());
    const double aside = -kFilled / 2 + width * static_cast<double>(i);
    std::string out;
    for (const auto& [at, value] : l.points) {
      const double left = x_of(at + aside, f), right = x_of(at + aside + width, f);
      const double top = std::min(y_of(value, f), y_of(0, f)), bottom = std::max(y_of(value, f), y_of(0, f));
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
          "fill=\"{}\"{}><title>{}{}{}: {:.6g}</title></rect>\n",
          left, top, right - left, bottom - top, colour(i), comes_again(i) ? " fill-opacity=\"0.5\"" : "",
          html_escaped(chart_.places[static_cast<size_t>(at)]), l.name.empty() ? "" : ", ",
          html_escaped(l.name), value);
    }
    return out + whiskers(l, f, aside + width / 2);
  }

  static const char* dashes(size_t i) { return comes_again(i) ? " stroke-dasharray=\"5 3\"" : ""; }

  // A name with its colour.
  std::string key(size_t i, double y) const {
    std::string sign;
    if (has_bars())
      sign = fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"24\" height=\"10\" fill=\"{}\"{}/>\n",
                         kLeft, y - 10, colour(i), comes_again(i) ? " fill-opacity=\"0.5\"" : "");
    else if (chart_.marks == FigureMarks::kPoints)
      sign =
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" {}=\"{}\"{}/>\n", kLeft + 12, y - 4,
                      comes_again(i) ? "stroke" : "fill", colour(i), comes_again(i) ? " fill=\"none\"" : "");
    else
      sign = fmt::format(
          "<path d=\"M{0:.1f} {1:.1f}h24\" stroke=\"{2}\"{3} stroke-width=\"2\" fill=\"none\"/>\n", kLeft,
          y - 4, colour(i), dashes(i));
    return sign + text(kLeft + 32, y, "start", names_[i]);
  }

  const Chart& chart_;
  std::vector<std::string> names_;  // of the lines, each once
  page::Range across_, up_;
  bool is_turned_ = false;  // the words of the places
  size_t turned_letters_ = kMostTurned;
  std::vector<double> x_ticks_, y_ticks_;
};

}  // namespace

std::string chart_svg(const Chart& chart) { return Drawing(chart).svg(); }

std::string line_chart_svg(const std::string& title, const std::string& x, const std::string& y,
                           const std::vector<Line>& lines, bool shows_title) {
  return chart_svg({title, x, y, FigureMarks::kLines, {}, {{"", lines}}, shows_title});
}

}  // namespace ostro::lab
