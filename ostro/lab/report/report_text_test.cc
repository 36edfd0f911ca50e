#include "ostro/lab/report/report_text.h"

#include <doctest/doctest.h>

#include "ostro/lab/report/figure.h"

namespace ostro::lab {
namespace {

Values some_values() {
  Values v;
  v.values.push_back({{"best", "SELECT 1", "p:1"}, 0.123456, NumberClass::kRecorded});
  v.values.push_back({{"count", "SELECT 2", "p:2"}, int64_t{7}, NumberClass::kMeasured});
  v.verdicts.push_back({{"helps", "SELECT 4", ""}, std::string("refuted"), NumberClass::kRecorded});
  v.tables.push_back({{"all", "SELECT 3", "p:3"}, {{"a<b"}, {{std::string("</script>")}}}});
  return v;
}

TEST_CASE("placeholders become values, and all else is text") {
  const auto body = report_body("# The {value best 2} <i>\n\nOf 12 & {{x} 3.5,\n{value count}.\n{table all}",
                                "r.txt", some_values());
  REQUIRE_MESSAGE(body.ok(), body.error().message());
  CHECK(body->html.starts_with(
      "<h2>The <a href=\"#value-best\" class=\"recorded\">0.12</a> &lt;i&gt;</h2>\n<p>Of 12 &amp; {x} 3.5,\n"
      "<a href=\"#value-count\" class=\"measured\">7</a>.</p>\n"));
  CHECK(body->html.find("a&lt;b") != std::string::npos);
  CHECK(body->html.find("&lt;/script&gt;") != std::string::npos);
  CHECK(body->html.find("<i>") == std::string::npos);
  CHECK(body->typed_numbers == std::vector<std::string>{"12", "3.5"});
}

TEST_CASE("a verdict leads to its hypothesis") {
  const auto body = report_body("It is {verdict helps}.", "r.txt", some_values());
  REQUIRE_MESSAGE(body.ok(), body.error().message());
  CHECK(body->html == "<p>It is <a href=\"#hypothesis-helps\" class=\"recorded\">refuted</a>.</p>\n");
  CHECK_FALSE(report_body("{verdict help}", "r.txt", some_values()).ok());
}

TEST_CASE("a wrong placeholder is an error with its line and the nearest name") {
  const auto error_of = [](const std::string& text) {
    const auto body = report_body(text, "r.txt", some_values());
    REQUIRE_FALSE(body.ok());
    return body.error().message();
  };
  CHECK(error_of("a\n{value bets}") == "r.txt:2: the plan has no query \"bets\"; the nearest is \"best\"");
  CHECK(error_of("{figure loss}") == "r.txt:1: the plan has no figure \"loss\"");
  CHECK(error_of("{value best").find("has no }") != std::string::npos);
  CHECK(error_of("{best}").find("write {value NAME}") != std::string::npos);
  CHECK(error_of("{number best}").find("write value, verdict, table or figure") != std::string::npos);
  CHECK(error_of("{value count 2}").find("no number with a fraction") != std::string::npos);
  CHECK(error_of("see {table all}") == "r.txt:1: {table all}: must be alone on its line");
  CHECK(error_of("a\n{table all} {table all}").find("r.txt:2: {table all}: must be alone") == 0);
  CHECK(error_of("# {table all}").find("must be alone on its line") != std::string::npos);
  CHECK(error_of("{value best 2 3}").find("write {value NAME}") != std::string::npos);
}

TEST_CASE("a figure with too many series, or numbers that no axis holds, is an error") {
  const auto error_of = [](const std::vector<std::vector<Value>>& rows) {
    auto db = Database::create(false);
    for (const auto& row : rows)
      check_ok(db->insert("chain", {row[0], row[1], row[2], int64_t{1}, std::string("h")}));
    Plan plan;
    plan.figures.push_back({"loss", "SELECT run, step, loss FROM chain", "p:4"});
    const auto values = ask_all(*db, plan);
    return values.ok() ? std::string() : values.error().message();
  };
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < 200; ++i) rows.push_back({std::to_string(i), i, 0.5});
  CHECK(error_of(rows).empty());
  rows.push_back({std::string("one more"), int64_t{1}, 0.5});
  CHECK(error_of(rows) == "p:4: figures.loss: has more than 200 series; choose some of them with WHERE");
  CHECK(error_of({{std::string("a"), int64_t{1}, 1e308}, {std::string("a"), int64_t{2}, -1e308}}) ==
        "p:4: figures.loss: has loss from -1e+308 to 1e+308: no axis is that long");
  CHECK_FALSE(error_of({{std::string("a"), int64_t{1}, 1.79e308}}).empty());
  CHECK(error_of({{std::string("a"), int64_t{1}, 1e307}, {std::string("a"), int64_t{2}, -1e307}}).empty());
}

TEST_CASE("a figure is a text that depends on its points and escapes its names") {
  const auto svg = [](double last) {
    return line_chart_svg("t<", "x&", "y", {{"</svg>", {{1, 2}, {2, last}}}});
  };
  CHECK(svg(3) == svg(3));
  CHECK(svg(3) != svg(3.5));
  CHECK(svg(3).find("t&lt;") != std::string::npos);
  CHECK(svg(3).find("&lt;/svg&gt;") != std::string::npos);
  CHECK(svg(3).find("</svg>") == svg(3).size() - 7);
}

}  // namespace
}  // namespace ostro::lab
