// json_trouble: says in words why a text that other programs read is not JSON.
#pragma once

#include <string>
#include <string_view>

namespace ostro::io {

// What Python's json accepts and JSON has not: NaN, Infinity, half of a surrogate pair (\ud83d alone). The
// first of these in the text, as the end of an error message: ": NaN at byte 12 is no JSON value; write
// null". Empty when there is none of them.
std::string json_trouble(std::string_view text);

}  // namespace ostro::io
