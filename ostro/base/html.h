// html_escaped: text made safe for HTML pages that are written by hand.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ostro {
namespace html {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The size in bytes of the well-formed UTF-8 character that `text` begins with; 0 if there is none. `text`
// must not be empty.
inline size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, and code points above U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F))
    return 0;
  // U+0080 to U+009F are control characters, too.
  if (first == 0xC2 && byte(1) < 0xA0) return 0;
  return size;
}

// The entity for a markup character; empty for any other.
inline std::string_view entity(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return "";
  }
}

}  // namespace html

// Returns `text` for any place between tags or between double quotes: markup characters become entities.
// Bytes that are not UTF-8 and control characters that no page may hold become U+FFFD; tabs and line ends
// stay.
inline std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t size = html::character_size(text.substr(i));
    const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n') || c == 0x7F;
    if (const std::string_view markup = html::entity(c); !markup.empty())
      out += markup;
    else if (size == 0 || control)
      out += html::kReplacement;
    else
      out += text.substr(i, size);
    i += size == 0 ? 1 : size;
  }
  return out;
}

}  // namespace ostro
