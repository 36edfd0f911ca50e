#include "ostro/io/json/json_words.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>

namespace ostro::io {
namespace {

// The code unit of "\uXXXX" at the beginning of a text; -1: it is none.
int32_t code_unit(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return -1;
  int32_t unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return error == std::errc() && end == text.data() + 6 ? unit : -1;
}

bool is_high(int32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(int32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

std::string json_trouble(std::string_view text) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest[0] == '"') {
      in_string = !in_string;
    } else if (in_string && rest[0] == '\\') {
      const int32_t unit = code_unit(rest), next = unit < 0 ? -1 : code_unit(rest.substr(6));
      if (is_low(unit) || (is_high(unit) && !is_low(next)))
        return fmt::format(": {} at byte {} is half of a surrogate pair, which is no character",
                           rest.substr(0, 6), i + 1);
      i += is_high(unit) ? 11 : 1;
    } else if (!in_string) {
      for (const std::string_view word : {"NaN", "-Infinity", "Infinity"})
        if (rest.starts_with(word))
          return fmt::format(": {} at byte {} is no JSON value; write null or a number", word, i + 1);
    }
  }
  return "";
}

}  // namespace ostro::io
