// Finds the members of a JSON object in its text without taking their values apart: for files of which most
// need not be read.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ostro::io {

struct JsonSlice {
  std::string_view key;    // as it is written, without quotes
  std::string_view value;  // of the text that was given
};

// The members of an object that begins with the first character of `text` and ends with the last one. JSON
// without spaces only; nothing when brackets or quotes do not fit each other. Values are not checked
// otherwise.
std::optional<std::vector<JsonSlice>> json_slices(std::string_view text);

// The value of a member, empty when there is none.
std::string_view json_slice(const std::vector<JsonSlice>& members, std::string_view key);

}  // namespace ostro::io
