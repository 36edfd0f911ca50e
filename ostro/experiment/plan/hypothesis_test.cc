#include "ostro/experiment/plan/hypothesis.h"

#include <doctest/doctest.h>

#include "ostro/config/yaml.h"
#include "ostro/experiment/plan/seeds.h"

namespace ostro::lab {
namespace {

std::string rule_error(const std::string& text) {
  const auto rule = Rule::parse(text);
  return rule.ok() ? "" : rule.error().message();
}

TEST_CASE("a rule holds where all its comparisons do") {
  const auto rule = Rule::parse("low95>0 and n >= 3 and 0.5 < mean");
  REQUIRE_MESSAGE(rule.ok(), rule.error().message());
  CHECK(rule->text() == "low95 > 0 and n >= 3 and 0.5 < mean");
  CHECK(rule->holds({{"low95", 0.1}, {"n", 3}, {"mean", 0.6}}));
  CHECK_FALSE(rule->holds({{"low95", 0.0}, {"n", 3}, {"mean", 0.6}}));
  CHECK_FALSE(rule->holds({{"n", 3}, {"mean", 0.6}}));  // one value has no interval
  CHECK(rule->uses("mean"));
  CHECK_FALSE(rule->uses("max"));
  CHECK(Rule::parse("mean<=-1e-3")->holds({{"mean", -0.001}}));
}

TEST_CASE("a rule with a mistake is an error") {
  CHECK(rule_error("low96 > 0").find("the nearest is \"low95\"") != std::string::npos);
  CHECK(rule_error("mean == 0").find("is no comparison") != std::string::npos);
  CHECK(rule_error("1 < 2").find("compares two numbers") != std::string::npos);
  CHECK(rule_error("mean > 0 or n > 2").find("does not join") != std::string::npos);
  for (const char* text : {"", "mean >", "mean > 0 and", "mean > .inf"}) CHECK(rule_error(text) != "");
}

TEST_CASE("hypotheses with a mistake are errors with their place") {
  const auto error_of = [](const std::string& text) {
    const auto read = read_hypotheses(*config::parse_yaml("h: {a: {" + text + "}}", "p")->find("h"));
    return read.ok() ? "" : read.error().message();
  };
  const std::string rules = "metric: SELECT, supported: mean > 0, refuted: mean < 0";
  CHECK(error_of(rules) == "");
  CHECK(error_of(rules + ", predict: {low: 0, high: 1, chance: 0.8}") == "");
  CHECK(error_of(rules + ", predict: {low: 2, high: 1, chance: 0.8}").find("low first") != std::string::npos);
  CHECK(error_of(rules + ", predict: {low: 0, high: 1, chance: 1}").find("chance is 1") != std::string::npos);
  CHECK(error_of(rules + ", predict: {low: 0, high: 1}").find("predict.chance is missing") !=
        std::string::npos);
  CHECK(error_of(rules + ", predicts: 1").find("nearest is \"predict\"") != std::string::npos);
  CHECK(error_of("metric: SELECT, supported: mean > 0").find("a.refuted: expected a text") !=
        std::string::npos);
  CHECK(error_of("metric: SELECT, supported: mean > low, refuted: mean < 0").find("add predict") !=
        std::string::npos);
}

TEST_CASE("seeds follow from registration, beacon and number") {
  CHECK(Seeds{std::string(64, 'a'), "lottery"}.of(2) == 2030430355676900427);
  CHECK(Seeds{}.of(2) == 2);
  CHECK(registration_seeds("registration x 12") == 12);
  for (const char* text : {"registration", "registration x 0", "registration x 3.5", "registration x 12345"})
    CHECK_FALSE(registration_seeds(text).has_value());
  const config::Node node = config::Node::list({seed_marker(1), config::Node::string("$registration")});
  CHECK(has_seeds(node));
  CHECK(config::flow_text(with_seeds(node, {})) == "[1, \"$registration\"]");
}

}  // namespace
}  // namespace ostro::lab
