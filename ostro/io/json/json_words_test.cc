#include "ostro/io/json/json_words.h"

#include <doctest/doctest.h>

namespace ostro::io {
namespace {

TEST_CASE("what other programs read and JSON has not is named") {
  CHECK(json_trouble(R"({"a": 1, "b": "NaN \ud83d\ude00 Infinity"})").empty());
  CHECK(json_trouble(R"({"a": NaN})") == ": NaN at byte 7 is no JSON value; write null or a number");
  CHECK(json_trouble(R"([-Infinity])").starts_with(": -Infinity at byte 2 "));
  CHECK(json_trouble(R"(["\\", "x\ud83d"])") ==
        ": \\ud83d at byte 10 is half of a surrogate pair, which is no character");
  CHECK(json_trouble(R"(["\ude00"])").find("\\ude00") != std::string::npos);
  CHECK(json_trouble(R"(["\ud83d\u0041)").find("\\ud83d") != std::string::npos);
}

}  // namespace
}  // namespace ostro::io
