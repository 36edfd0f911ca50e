#include "ostro/chain/canonical.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace ostro::chain {
namespace {

TEST_CASE("values by path") {
  using Values = std::vector<std::pair<std::string, std::string>>;
  CHECK(values_by_path(R"({"a":{"b":1,"c":"0x1p-1","e":{}},"d":[true],"f":"x"})") ==
        Values{{"a.b", "1"}, {"a.c", "0.5"}, {"a.e", "{}"}, {"d", "[true]"}, {"f", "x"}});
  CHECK(values_by_path("{}").empty());
  CHECK(values_by_path("[1]").empty());
  CHECK(values_by_path("{").empty());
}

TEST_CASE("hex floats are exact and have one text each") {
  const std::pair<double, const char*> golden[] = {
      {0.0, "0x0p+0"},
      {-0.0, "-0x0p+0"},
      {1.0, "0x1p+0"},
      {3.0, "0x1.8p+1"},
      {-0.5, "-0x1p-1"},
      {0.001, "0x1.0624dd2f1a9fcp-10"},
      {static_cast<double>(8.324f), "0x1.0a5e36p+3"},
      {std::numeric_limits<double>::max(), "0x1.fffffffffffffp+1023"},
      {std::numeric_limits<double>::min(), "0x1p-1022"},
      {std::numeric_limits<double>::denorm_min(), "0x0.0000000000001p-1022"},
  };
  for (const auto& [value, text] : golden) {
    CHECK(hex_float(value) == text);
    const Result<double> back = parse_hex_float(text);
    REQUIRE_MESSAGE(back.ok(), text);
    CHECK(*back == value);
    CHECK(std::signbit(*back) == std::signbit(value));
  }
  CHECK(hex_float(NAN) == "nan");
  CHECK(hex_float(-INFINITY) == "-inf");
  for (const char* bad : {"", "1", "0x", "0x1", "0x2p+0", "0x1.80p+1", "0x1.8P+1", "0x1.8p1", "0x1.8p+1 ",
                          "nan", "inf", "-", "--0x1p+0", "+0x1p+0", "0x-1p+0", "0x1p+9999"})
    CHECK_MESSAGE(!parse_hex_float(bad).ok(), bad);
}

TEST_CASE("canonical objects sort their keys and hold no floats") {
  const auto text = canonical_object(R"( {"b": [1, 0.5, -2e0], "a": {"z": null, "y": "x\u0001é"}} )");
  REQUIRE(text.ok());
  CHECK(*text == R"({"a":{"y":"x\u0001é","z":null},"b":[1,"0x1p-1","-0x1p+1"]})");
  CHECK(*canonical_object(*text) == *text);
  for (const char* bad : {"", "[]", "1", "{", "{\"a\":1}x"}) CHECK_MESSAGE(!canonical_object(bad).ok(), bad);
}

TEST_CASE("lower-case hexadecimal digits") {
  CHECK(is_lower_hex("0af"));
  CHECK(is_lower_hex("0af", 3));
  CHECK(!is_lower_hex("0af", 4));
  CHECK(!is_lower_hex(""));
  CHECK(!is_lower_hex("0AF"));
  CHECK(!is_lower_hex("0x1"));
}

TEST_CASE("differences name the key and both values") {
  CHECK(
      object_differences(R"({"a":{"b":1,"c":"0x1p-1"},"d":true})", R"({"a":{"b":2,"c":"0x1p-2"},"e":[1]})") ==
      std::vector<std::string>{"a.b is 1 there and 2 here", "a.c is 0.5 there and 0.25 here",
                               "d is true there and absent here", "e is absent there and [1] here"});
  CHECK(object_differences("{}", "{}").empty());
  CHECK(object_differences(R"({"a":{"b":"0x1p-1"}})", R"({"a":[[0,"0x1.8p+1"],[1,"x"]]})") ==
        std::vector<std::string>{R"(a is {"b":0.5} there and [[0,3.0],[1,"x"]] here)"});
}

}  // namespace
}  // namespace ostro::chain
