// is_utf8, as_utf8: a check for well-formed UTF-8, and texts that are made so. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ostro::config {

// Returns true when the bytes are well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view bytes);
// The text; if it is no UTF-8, every byte of it that is not ASCII is written as \xHH.
std::string as_utf8(std::string_view text);

}  // namespace ostro::config
