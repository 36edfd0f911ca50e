#include "ostro/io/json_slices.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ostro::io {
namespace {

TEST_CASE("json slices: values are those of a parser, whatever is in the strings") {
  const nlohmann::json json = {{"a", 1},
                               {"b \"}] \\", {"x", "\\", "\"", "\\\"", "]}", nullptr, 1.5}},
                               {"c", {{"d", {{"e", {1, 2, {3}}}}}, {"", ""}}},
                               {"z", nlohmann::json::array()},
                               {"zz", false}};
  const std::string text = json.dump();
  const auto members = json_slices(text);
  REQUIRE(members.has_value());
  REQUIRE(members->size() == json.size());
  for (const JsonSlice& member : *members) {
    const auto key = nlohmann::json::parse('"' + std::string(member.key) + '"').get<std::string>();
    CHECK(nlohmann::json::parse(member.value) == json.at(key));
  }
  CHECK(json_slice(*members, "z") == "[]");
  CHECK(json_slice(*members, "y").empty());
  CHECK(json_slices("{}")->empty());
  // Cut anywhere it is no object.
  for (size_t size = 0; size < text.size(); ++size)
    CHECK(!json_slices(std::string_view(text).substr(0, size)).has_value());
}

TEST_CASE("json slices: what is no object without spaces is refused") {
  for (const char* text : {"", "{", "}", "[]", "{ }", "{\"a\"}", "{\"a\":}x}", "{\"a\":1,}", "{\"a\":\"}",
                           "{\"a\\\":1}", "{\"a\":1}}", "{\"a\":[1}"})
    CHECK_MESSAGE(!json_slices(text).has_value(), text);
}

}  // namespace
}  // namespace ostro::io
