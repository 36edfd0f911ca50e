// glob_matches: globs over names in options, such as those of parameters and modules. A pure function.
#pragma once

#include <string_view>

namespace ostro::config {

// Returns true when `pattern` matches the whole of `text`. "*" matches any text, "/" included; every other
// character matches itself. The time grows exponentially with the number of "*", so it is for short patterns
// of the user.
inline bool glob_matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*')
    return !text.empty() && text[0] == pattern[0] && glob_matches(pattern.substr(1), text.substr(1));
  for (size_t skip = 0; skip <= text.size(); ++skip)
    if (glob_matches(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

}  // namespace ostro::config
