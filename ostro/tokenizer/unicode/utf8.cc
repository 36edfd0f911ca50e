#include "ostro/tokenizer/unicode/utf8.h"

#include <cstring>

namespace ostro::tokenizer {
namespace {

// The result of reading one sequence: its length, and whether it was well formed. An ill-formed sequence is a
// "maximal subpart" (Unicode 16, chapter 3, "U+FFFD Substitution of Maximal Subparts").
struct Step {
  size_t length;
  bool valid;
};

Step step(const unsigned char* p, size_t available) {
  const unsigned char lead = p[0];
  if (lead < 0x80) return {1, true};
  // The allowed range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
  size_t need = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  if (available < 2 || p[1] < low || p[1] > high) return {1, false};
  for (size_t i = 2; i < need; ++i) {
    if (i >= available || (p[i] & 0xC0) != 0x80) return {i, false};
  }
  return {need, true};
}

// The number of leading ASCII bytes of p, counted in whole words of eight bytes.
size_t ascii_words(const unsigned char* p, size_t available) {
  size_t i = 0;
  for (; i + 8 <= available; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  return i;
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  for (size_t i = 0; i < bytes.size();) {
    i += ascii_words(p + i, bytes.size() - i);
    if (i == bytes.size()) break;
    const Step s = step(p + i, bytes.size() - i);
    if (!s.valid) return false;
    i += s.length;
  }
  return true;
}

size_t valid_length_at(std::string_view bytes, size_t begin) {
  const Step s = step(reinterpret_cast<const unsigned char*>(bytes.data()) + begin, bytes.size() - begin);
  return s.valid ? s.length : 0;
}

std::string repair_utf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 8);  // growing later would hold a long text in memory twice
  for (size_t i = 0; i < bytes.size();) {
    const Step s = step(p + i, bytes.size() - i);
    out.append(s.valid ? bytes.substr(i, s.length) : std::string_view("\xEF\xBF\xBD"));
    i += s.length;
  }
  return out;
}

void append_utf8(uint32_t c, std::string& out) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

}  // namespace ostro::tokenizer
