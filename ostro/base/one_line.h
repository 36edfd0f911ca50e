// one_line: makes a text from outside, such as a name in a stranger's file, safe to print in one line. A pure
// function.
#pragma once

#include <string>
#include <string_view>

namespace ostro {

// Returns the text with a blank in place of every character that ends a line, controls a terminal, or
// reorders its neighbours: U+0000 to U+001F, U+007F to U+009F, U+2028 to U+202E and U+2066 to U+2069, in
// UTF-8. All other bytes stay as they are.
inline std::string one_line(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const unsigned a = byte(i), b = byte(i + 1), c = byte(i + 2);
    size_t size = 0;  // of the character, if it is one of these
    if (a < 0x20 || a == 0x7F)
      size = 1;
    else if (a == 0xC2 && b >= 0x80 && b <= 0x9F)
      size = 2;
    else if (a == 0xE2 && ((b == 0x80 && c >= 0xA8 && c <= 0xAE) || (b == 0x81 && c >= 0xA6 && c <= 0xA9)))
      size = 3;
    out += size > 0 ? ' ' : text[i];
    i += size > 0 ? size : 1;
  }
  return out;
}

}  // namespace ostro
