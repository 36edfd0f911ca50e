#include "ostro/lab/report/report_text.h"

#include <doctest/doctest.h>

#include "ostro/lab/report/figure.h"

namespace ostro::lab {
namespace {

Values some_values() {
  Values v;
  v.values.push_back({{"best", "SELECT 1", "p:1"}, 0.123456, NumberClass::kRecorded});
  v.values.push_back({{"count", "SELECT 2", "p:2"}, int64_t{7}, NumberClass::kMeasured});
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
  CHECK(error_of("{number best}").find("write value, table or figure") != std::string::npos);
  CHECK(error_of("{value count 2}").find("no number with a fraction") != std::string::npos);
  CHECK(error_of("{value best 2 3}").find("write {value NAME}") != std::string::npos);
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
