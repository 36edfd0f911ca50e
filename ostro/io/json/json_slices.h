// json_slices: finds the members of a JSON object in its text, without parsing their values. For large files
// of which only a part is needed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ostro::io {

// One member. Both views point into the text that was given.
struct JsonSlice {
  std::string_view key;    // without quotes
  std::string_view value;  // JSON text
};

// The members of the object that is `text`, from its first character to its last one.
//
// Returns nothing when a bracket or quote has no partner, when there is white space outside of strings, or
// when a real parser could find another value for a key: because a key occurs twice, or contains an escape.
// Other errors are not noticed, so a value may be invalid JSON. Objects inside of values are not checked for
// double keys.
std::optional<std::vector<JsonSlice>> json_slices(std::string_view text);

// The value of a member; empty when there is no such key.
std::string_view json_slice(const std::vector<JsonSlice>& members, std::string_view key);

}  // namespace ostro::io
