// Finds the members of a JSON object in its text without taking their values apart: for files of which most
// need not be read.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ostro::io {

struct JsonSlice {
  std::string_view key;    // without quotes
  std::string_view value;  // of the text that was given
};

// The members of an object that begins with the first character of `text` and ends with the last one. Nothing
// when a bracket or quote has no partner, when there is a space outside of strings, and when a parser could
// find another value by a key: a key stands there twice, or with an escape in it. What else stands outside of
// strings is not looked at, so a value need not be JSON, and what holds for the keys of `text` need not hold
// for those of objects in it.
std::optional<std::vector<JsonSlice>> json_slices(std::string_view text);

// The value of a member, empty when there is none.
std::string_view json_slice(const std::vector<JsonSlice>& members, std::string_view key);

}  // namespace ostro::io
