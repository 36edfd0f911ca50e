#include "ostro/io/json/json_slices.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ostro::io {
namespace {

TEST_CASE("json slices: values are those of a parser, whatever is in the strings") {
  const nlohmann::json json = {{"a", 1},
                               {"b }] ", {"x", "\\", "\"", "\\\"", "]}", nullptr, 1.5}},
                               {"c", {{"d", {{"e \"\\", {1, 2, {3}}}}}, {"", ""}}},
                               {"z", nlohmann::json::array()},
                               {"zz", false}};
  const std::string text = json.dump();
  const auto members = json_slices(text);
  REQUIRE(members.has_value());
  REQUIRE(members->size() == json.size());
  for (const JsonSlice& member : *members)
    CHECK(nlohmann::json::parse(member.value) == json.at(std::string(member.key)));
  CHECK(json_slice(*members, "z") == "[]");
  CHECK(json_slice(*members, "y").empty());
  CHECK(json_slices("{}")->empty());
  // Cut anywhere it is no object.
  for (size_t size = 0; size < text.size(); ++size)
    CHECK(!json_slices(std::string_view(text).substr(0, size)).has_value());
}

TEST_CASE("json slices: what is no object is refused") {
  for (const char* text : {"", "{", "}", "[]", R"({"a"})", R"({"a":}x})", R"({"a":1,})", R"({"a":"})",
                           R"({"a\":1})", R"({"a":1}})", R"({"a":})", R"({"a":,"b":1})"})
    CHECK_MESSAGE(!json_slices(text).has_value(), text);
  for (const char* text : {R"({"a":[1})", R"({"a":[1}})", R"({"a":{"b":1]})", R"({"a":[{1]}})"})
    CHECK_MESSAGE(!json_slices(text).has_value(), text);
}

TEST_CASE("json slices: spaces outside of strings are refused") {
  for (const char* text : {"{ }", R"({"a": 1})", R"({"a" :1})", R"({"a":1 })", R"({"a":[1, 2]})",
                           "{\"a\":1,\n\"b\":2}", "{\"a\":\t1}"})
    CHECK_MESSAGE(!json_slices(text).has_value(), text);
}

TEST_CASE("json slices: keys by which a parser could find something else are refused") {
  for (const char* text : {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":3})", R"({"\u0061":1})", R"({"a\"":1})"}) {
    CHECK(nlohmann::json::accept(text));
    CHECK_MESSAGE(!json_slices(text).has_value(), text);
  }
  CHECK(json_slices(R"({"a":{"b":1,"b":2,"\u0061":3}})")->size() == 1);  // inner objects are not looked at
}

}  // namespace
}  // namespace ostro::io
