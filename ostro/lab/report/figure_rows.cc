#include "ostro/lab/report/figure_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ostro/lab/report/figure.h"
#include "ostro/lab/report/values.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/sql/operands.h"

namespace ostro::lab {
namespace {

constexpr size_t kMostSeries = 200, kMostPanels = 24, kMostPlaces = 40;

// The columns of a form by their numbers.
struct FigureColumns {
  std::optional<size_t> panel;
  size_t series = 0, x = 1, y = 2;
  bool has_spans = false;  // y + 1 and y + 2 are low and high
};

FigureColumns columns_of_figure(const FigureForm& form, size_t columns) {
  FigureColumns out;
  if (form.facets) out = {0, 1, 2, 3, false};
  out.has_spans = columns > out.y + 1;
  return out;
}

bool is_number(const Value& value) {
  if (const auto* d = std::get_if<double>(&value)) return std::isfinite(*d);
  return std::holds_alternative<int64_t>(value);
}

double number(const Value& value) {
  const auto* d = std::get_if<double>(&value);
  return d != nullptr ? *d : static_cast<double>(std::get<int64_t>(value));
}

Status check_columns(const Query& query, size_t columns) {
  const size_t plain = query.form.facets ? 4 : 3;
  const FigureMarks marks = query.form.marks;
  const bool may_be_plain = marks != FigureMarks::kBands, may_have_spans = marks != FigureMarks::kLines;
  if ((may_be_plain && columns == plain) || (may_have_spans && columns == plain + 2)) return {};
  const std::string names = query.form.facets ? "panel, series, x and y" : "series, x and y";
  return wrong_shape("figures", query,
                     fmt::format("gives {} columns; {} has {}: {}{}", columns,
                                 marks == FigureMarks::kLines ? "a figure" : "a figure of this form",
                                 !may_be_plain    ? std::to_string(plain + 2)
                                 : may_have_spans ? fmt::format("{} or {}", plain, plain + 2)
                                 : plain == 3     ? "three"
                                                  : "four",
                                 names, may_have_spans ? ", then low and high" : ""));
}

// An error where there are too many of something to tell apart.
Status check_count(const Query& query, const std::set<std::string>& all, size_t most, const char* what) {
  if (all.size() <= most) return {};
  return wrong_shape("figures", query,
                     fmt::format("has more than {} {}; choose some of them with WHERE", most, what));
}

Status check_row(const Query& query, const FigureColumns& at, const std::vector<Value>& row) {
  const bool has_bars = query.form.marks == FigureMarks::kBars;
  if ((!has_bars && !is_number(row[at.x])) || !is_number(row[at.y]))
    return wrong_shape("figures", query,
                       fmt::format("has a point ({}, {}), which are not two numbers{}", value_text(row[at.x]),
                                   value_text(row[at.y]), sql::division_hint(query.sql)));
  if (!at.has_spans) return {};
  const Value &low = row[at.y + 1], &high = row[at.y + 2];
  if (!is_number(low) || !is_number(high) || number(low) > number(row[at.y]) ||
      number(high) < number(row[at.y]))
    return wrong_shape(
        "figures", query,
        fmt::format("has a point ({}, {}) with low {} and high {}; it must lie between two numbers",
                    value_text(row[at.x]), value_text(row[at.y]), value_text(low), value_text(high)));
  return {};
}

// An error where no axis fits the numbers of some columns, and those that the axis has anyway.
Status check_range(const Query& query, const Rows& rows, size_t first, size_t last,
                   std::vector<double> values = {}) {
  for (const auto& row : rows.rows)
    for (size_t column = first; column <= last; ++column) values.push_back(number(row[column]));
  const page::Range range = page::range_of(values);
  if (std::isfinite(range.high - range.low)) return {};
  return wrong_shape("figures", query,
                     fmt::format("has {} from {} to {}: no axis is that long", rows.columns[first],
                                 *std::min_element(values.begin(), values.end()),
                                 *std::max_element(values.begin(), values.end())));
}

// The item of a name, at the end where it is new.
template <class T>
T& named(std::vector<T>& items, const std::string& name) {
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const T& item) { return item.name == name; });
  if (found != items.end()) return *found;
  items.push_back({name, {}});
  return items.back();
}

}  // namespace

Error wrong_shape(const char* what, const Query& query, const std::string& message) {
  return invalid_argument(fmt::format("{}: {}.{}: {}", query.where, what, query.name, message));
}

Status check_figure(const Query& query, const Rows& rows) {
  RETURN_IF_ERROR(check_columns(query, rows.columns.size()));
  if (rows.rows.empty()) return wrong_shape("figures", query, "gives no rows");
  const FigureColumns at = columns_of_figure(query.form, rows.columns.size());
  const bool has_bars = query.form.marks == FigureMarks::kBars;
  std::set<std::string> series, panels, places;
  std::set<std::vector<std::string>> bars;
  for (const auto& row : rows.rows) {
    RETURN_IF_ERROR(check_row(query, at, row));
    const std::string panel = at.panel ? value_text(row[*at.panel]) : "";
    series.insert(value_text(row[at.series]));
    panels.insert(panel);
    RETURN_IF_ERROR(check_count(query, series, kMostSeries, "series"));
    RETURN_IF_ERROR(check_count(query, panels, kMostPanels, "panels"));
    if (!has_bars) continue;
    places.insert(value_text(row[at.x]));
    RETURN_IF_ERROR(check_count(query, places, kMostPlaces, "places of bars"));
    if (!bars.insert({panel, value_text(row[at.series]), value_text(row[at.x])}).second)
      return wrong_shape("figures", query,
                         fmt::format("has two bars of \"{}\" at \"{}\"; one can be seen",
                                     value_text(row[at.series]), value_text(row[at.x])));
  }
  if (!has_bars) RETURN_IF_ERROR(check_range(query, rows, at.x, at.x));
  // Bars begin at 0.
  return check_range(query, rows, at.y, at.has_spans ? at.y + 2 : at.y,
                     has_bars ? std::vector<double>{0} : std::vector<double>());
}

std::string figure_svg(const QuotedRows& figure, bool shows_name) {
  const Query& query = figure.query;
  const FigureColumns at = columns_of_figure(query.form, figure.rows.columns.size());
  Chart chart{query.name, figure.rows.columns[at.x], figure.rows.columns[at.y], query.form.marks, {}, {},
              shows_name};
  for (const auto& row : figure.rows.rows) {
    Panel& panel = named(chart.panels, at.panel ? value_text(row[*at.panel]) : "");
    Line& line = named(panel.lines, value_text(row[at.series]));
    double x = 0;
    if (query.form.marks == FigureMarks::kBars) {
      const std::string place = value_text(row[at.x]);
      const auto found = std::find(chart.places.begin(), chart.places.end(), place);
      x = static_cast<double>(found - chart.places.begin());
      if (found == chart.places.end()) chart.places.push_back(place);
    } else {
      x = number(row[at.x]);
    }
    line.points.emplace_back(x, number(row[at.y]));
    if (at.has_spans) line.spans.emplace_back(number(row[at.y + 1]), number(row[at.y + 2]));
  }
  return chart_svg(chart);
}

}  // namespace ostro::lab
