// is_valid_utf8, repair_utf8, read_code_point and others: check, repair and read UTF-8. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ostro::tokenizer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// One code point of valid UTF-8 and the number of its bytes.
struct CodePoint {
  uint32_t value;
  uint32_t length;
};

// Reads the code point that begins at p; the text must be valid UTF-8 (is_valid_utf8).
inline CodePoint read_code_point(const char* p) {
  const auto b = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  if (b(0) < 0x80) return {b(0), 1};
  if (b(0) < 0xE0) return {(b(0) & 0x1F) << 6 | (b(1) & 0x3F), 2};
  if (b(0) < 0xF0) return {(b(0) & 0x0F) << 12 | (b(1) & 0x3F) << 6 | (b(2) & 0x3F), 3};
  return {(b(0) & 0x07) << 18 | (b(1) & 0x3F) << 12 | (b(2) & 0x3F) << 6 | (b(3) & 0x3F), 4};
}

// The start of the code point that ends at `end` (> 0). The text is valid UTF-8.
inline size_t code_point_before(std::string_view text, size_t end) {
  do {
    --end;
  } while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

// True when the bytes are UTF-8: shortest form, no surrogates, nothing above U+10FFFF.
bool is_valid_utf8(std::string_view bytes);

// The length of the valid sequence at `begin` (< bytes.size()), or 0.
size_t valid_length_at(std::string_view bytes, size_t begin);

// The text with U+FFFD in place of every maximal ill-formed subpart, as Python's
// bytes.decode(errors="replace") gives it.
std::string repair_utf8(std::string_view bytes);

// Appends the UTF-8 of a code point.
void append_utf8(uint32_t code_point, std::string& out);

}  // namespace ostro::tokenizer
