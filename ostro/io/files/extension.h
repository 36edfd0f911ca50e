// What the end of a file's name says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace ostro::io {

// Whether the path ends with `extension` (".jsonl.gz"), in upper or lower case of ASCII.
inline bool has_extension(std::string_view path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(extension.begin(), extension.end(), path.end() - static_cast<ptrdiff_t>(extension.size()),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace ostro::io
