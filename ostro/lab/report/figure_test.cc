// Figures: golden bytes of each form, and what is said of rows that are not those of a form.
#include "ostro/lab/report/figure.h"

#include <doctest/doctest.h>

#include "ostro/base/sha256.h"
#include "ostro/lab/report/figure_rows.h"
#include "ostro/lab/report/values.h"

namespace ostro::lab {
namespace {

// Of bars that go up and down, with a name that is markup.
constexpr const char* kBarsGolden =
    R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 434" role="img" font-family="sans-serif" font-size="13" fill="#1d2127">
<title>f</title>
<rect width="720" height="434" fill="#fcfcfb"/>
<text x="64.0" y="22.0" text-anchor="start">f</text>
<path d="M64.0 319.3L700.0 319.3" stroke="#dfe2e6" fill="none"/>
<text x="56.0" y="323.3" text-anchor="end">-1</text>
<path d="M64.0 229.8L700.0 229.8" stroke="#dfe2e6" fill="none"/>
<text x="56.0" y="233.8" text-anchor="end">0</text>
<path d="M64.0 140.2L700.0 140.2" stroke="#dfe2e6" fill="none"/>
<text x="56.0" y="144.2" text-anchor="end">1</text>
<path d="M64.0 50.7L700.0 50.7" stroke="#dfe2e6" fill="none"/>
<text x="56.0" y="54.7" text-anchor="end">2</text>
<text x="223.0" y="348.0" text-anchor="middle">&lt;web&gt;</text>
<text x="541.0" y="348.0" text-anchor="middle">code</text>
<path d="M64.0 229.8L700.0 229.8" stroke="#626a75" fill="none"/>
<text x="382.0" y="370.0" text-anchor="middle">part</text>
<text x="64.0" y="36.0" text-anchor="start">bytes</text>
<rect x="95.80" y="50.74" width="127.20" height="179.01" fill="#2f6db5"><title>&lt;web&gt;, one: 2</title></rect>
<rect x="413.80" y="229.75" width="127.20" height="89.51" fill="#2f6db5"><title>code, one: -1</title></rect>
<rect x="64.0" y="384.0" width="24" height="10" fill="#2f6db5"/>
<text x="96.0" y="394.0" text-anchor="start">one</text>
<rect x="223.00" y="140.25" width="127.20" height="89.51" fill="#d9661f"><title>&lt;web&gt;, two: 1</title></rect>
<rect x="64.0" y="404.0" width="24" height="10" fill="#d9661f"/>
<text x="96.0" y="414.0" text-anchor="start">two</text>
</svg>
)svg";

using Table = std::vector<std::vector<Value>>;

QuotedRows figure_of(FigureMarks marks, bool facets, std::vector<std::string> columns, const Table& rows) {
  QuotedRows out{{"f", "SELECT", "plan.yaml:3", {marks, facets}}, {}};
  out.rows.columns = std::move(columns);
  out.rows.rows = rows;
  return out;
}

std::string error_of(const QuotedRows& figure) {
  const Status status = check_figure(figure.query, figure.rows);
  return status.ok() ? "" : status.error().message();
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

const Table kTwoSeries = {{std::string("a"), int64_t{0}, 1.0},
                          {std::string("a"), int64_t{10}, 3.0},
                          {std::string("b"), int64_t{0}, 2.0},
                          {std::string("b"), int64_t{10}, 2.5}};

TEST_CASE("every form has the same bytes everywhere") {
  const QuotedRows bars = figure_of(FigureMarks::kBars, false, {"run", "part", "bytes"},
                                    {{std::string("one"), std::string("<web>"), 2.0},
                                     {std::string("one"), std::string("code"), -1.0},
                                     {std::string("two"), std::string("<web>"), int64_t{1}}});
  CHECK(error_of(bars).empty());
  CHECK(figure_svg(bars) == kBarsGolden);
}

TEST_CASE("a form says what it draws") {
  const std::string lines = figure_svg(figure_of(FigureMarks::kLines, false, {"s", "x", "y"}, kTwoSeries));
  CHECK(sha256_hex(lines) == "818ca88b777ec44482bdcb29503ca0f80ccbcdcdefe3eeb9594b657ef37a6777");
  CHECK(count_of(lines, "stroke-linejoin") == 2);
  CHECK(count_of(lines, "<circle") == 0);
  const std::string points = figure_svg(figure_of(FigureMarks::kPoints, false, {"s", "x", "y"}, kTwoSeries));
  CHECK(count_of(points, "<circle") == 4 + 2);  // and two in the list of names
  CHECK(count_of(points, "stroke-linejoin") == 0);
  Table spans = kTwoSeries;
  for (auto& row : spans) {
    const double y = std::get<double>(row[2]);
    row.insert(row.end(), {Value(y - 0.5), Value(y + 0.25)});
  }
  const std::vector<std::string> columns = {"s", "x", "y", "low", "high"};
  const std::string bands = figure_svg(figure_of(FigureMarks::kBands, false, columns, spans));
  CHECK(sha256_hex(bands) == "d027385d10d651b3a805573bef4d795887a506d0712d9cbc6720c3b6a1dc3300");
  CHECK(count_of(bands, "fill-opacity=\"0.18\"") == 2);
  CHECK(count_of(bands, "stroke-linejoin") == 2);
  const std::string whiskers = figure_svg(figure_of(FigureMarks::kPoints, false, columns, spans));
  CHECK(sha256_hex(whiskers) == "50f519c7abc2739fc5b1ecbc78fc86dacbf519e401d3689af088a2646e44f30f");
  CHECK(count_of(whiskers, "m-3 0h6m-3 0V") == 4);
}

TEST_CASE("facets are panels with the same axes, and a name has one colour in all of them") {
  const QuotedRows facets = figure_of(FigureMarks::kLines, true, {"size", "s", "x", "y"},
                                      {{std::string("small"), std::string("a"), 0.0, 1.0},
                                       {std::string("small"), std::string("a"), 1.0, 2.0},
                                       {std::string("large"), std::string("b"), 0.0, 5.0},
                                       {std::string("large"), std::string("a"), 1.0, 4.0}});
  CHECK(error_of(facets).empty());
  const std::string svg = figure_svg(facets);
  CHECK(sha256_hex(svg) == "341488e61bb169829c9effb315851c8b7d1e9bf3b2f971ce87a2f40683df7707");
  CHECK(svg.find(">small</text>") != std::string::npos);
  CHECK(svg.find(">large</text>") != std::string::npos);
  CHECK(count_of(svg, ">a</text>") == 1);  // one list of names
  CHECK(count_of(svg, "stroke=\"#2f6db5\" stroke-width=\"1.6\"") == 2);
  CHECK(count_of(svg, "stroke=\"#d9661f\" stroke-width=\"1.6\"") == 1);
}

TEST_CASE("rows that are not those of the form are errors that say what is wanted") {
  const auto error = [](FigureMarks marks, bool facets, std::vector<std::string> columns, const Table& rows) {
    return error_of(figure_of(marks, facets, std::move(columns), rows));
  };
  const Table row = {{std::string("a"), 1.0, 2.0}};
  CHECK(error(FigureMarks::kLines, false, {"s", "x"}, {}) ==
        "plan.yaml:3: figures.f: gives 2 columns; a figure has three: series, x and y");
  CHECK(error(FigureMarks::kBands, false, {"s", "x", "y"}, row) ==
        "plan.yaml:3: figures.f: gives 3 columns; a figure of this form has 5: series, x and y, then low and "
        "high");
  CHECK(error(FigureMarks::kBars, true, {"s", "x", "y"}, row) ==
        "plan.yaml:3: figures.f: gives 3 columns; a figure of this form has 4 or 6: panel, series, x and y, "
        "then low "
        "and high");
  const std::vector<std::string> columns = {"s", "x", "y", "low", "high"};
  CHECK(error(FigureMarks::kBands, false, columns, {{std::string("a"), 1.0, 2.0, 2.5, 3.0}}) ==
        "plan.yaml:3: figures.f: has a point (1.0, 2.0) with low 2.5 and high 3.0; it must lie between two "
        "numbers");
  CHECK(error(FigureMarks::kPoints, false, {"s", "x", "y"}, {{std::string("a"), std::string("b"), 2.0}})
            .find("has a point (b, 2.0), which are not two numbers") != std::string::npos);
  CHECK(error(FigureMarks::kBars, false, {"s", "x", "y"},
              {{std::string("a"), std::string("b"), 2.0}, {std::string("a"), std::string("b"), 3.0}}) ==
        "plan.yaml:3: figures.f: has two bars of \"a\" at \"b\"; one can be seen");
  Table many;
  for (int64_t i = 0; i < 41; ++i) many.push_back({std::string("a"), i, 1.0});
  CHECK(error(FigureMarks::kBars, false, {"s", "x", "y"}, many) ==
        "plan.yaml:3: figures.f: has more than 40 places of bars; choose some of them with WHERE");
  Table panels;
  for (int64_t i = 0; i < 25; ++i) panels.push_back({i, std::string("a"), 1.0, 1.0});
  CHECK(error(FigureMarks::kLines, true, {"p", "s", "x", "y"}, panels) ==
        "plan.yaml:3: figures.f: has more than 24 panels; choose some of them with WHERE");
  const Table huge = {{std::string("a"), 1.0, 1.7e308}, {std::string("a"), 2.0, 1.79e308}};
  CHECK(error(FigureMarks::kPoints, false, {"s", "x", "y"}, huge).empty());
  CHECK(error(FigureMarks::kBars, false, {"s", "x", "y"}, huge) ==
        "plan.yaml:3: figures.f: has y from 0 to 1.79e+308: no axis is that long");
}

}  // namespace
}  // namespace ostro::lab
