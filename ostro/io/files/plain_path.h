// is_plain_path: whether a name, for example from the file of a stranger, may stand for a file below a
// directory.
#pragma once

#include <algorithm>
#include <string_view>

namespace ostro::io {

// Parts separated by "/", each of letters, digits, _, - and . (not first). So the path is relative, leads to
// no directory above, has no scheme, and is the same on every file system.
inline bool is_plain_path(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool plain = std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             c == '-' || c == '.';
    });
    if (part.empty() || part[0] == '.' || !plain) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace ostro::io
