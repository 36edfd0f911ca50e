#include "ostro/tokenizer/unicode/utf8.h"

#include <doctest/doctest.h>

namespace ostro::tokenizer {
namespace {

TEST_CASE("repair_utf8 gives one U+FFFD per maximal subpart, as Python does") {
  // Expected: bytes.decode(errors="replace") of Python 3.11, with "?" for U+FFFD.
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xC3\xA9", "\xC3\xA9"},
      {"\x80", "?"},
      {"\xC3", "?"},
      {"\xC3(", "?("},
      {"\xC0\xAF", "??"},
      {"\xE2\x82", "?"},
      {"\xE2\x82"
       "A",
       "?A"},
      {"\xE0\x80\x80", "???"},
      {"\xED\xA0\x80", "???"},
      {"\xF0\x9F\x98", "?"},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
      {"\xF0\x80\x80\x80", "????"},
      {"\xF4\x90\x80\x80", "????"},
      {"\xF8\x88\x80\x80\x80", "?????"},
      {"\xF0\x9F\xF0\x9F\x98\x80", "?\xF0\x9F\x98\x80"},
      {"\xFF\xFE", "??"},
      {"12345678\xE2\x82\xAC\xE2\x82", "12345678\xE2\x82\xAC?"},
  };
  for (const auto& [input, expected] : cases) {
    std::string found;
    for (const char c : expected) found += c == '?' ? "\xEF\xBF\xBD" : std::string(1, c);
    CHECK(repair_utf8(input) == found);
    CHECK(is_valid_utf8(input) == (expected.find('?') == std::string::npos));
    CHECK(is_valid_utf8(repair_utf8(input)));
  }
}

TEST_CASE("every code point is written and read back" * doctest::test_suite("one-thread")) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    append_utf8(c, text);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    REQUIRE(is_valid_utf8(text) == !surrogate);
    const CodePoint read = read_code_point(text.data());
    REQUIRE(read.value == c);
    REQUIRE(read.length == text.size());
  }
}

}  // namespace
}  // namespace ostro::tokenizer
