// is_utf8: a check for well-formed UTF-8. A pure function.
#pragma once

#include <string_view>

namespace ostro::config {

// Returns true when the bytes are well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view bytes);

}  // namespace ostro::config
