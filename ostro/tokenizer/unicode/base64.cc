#include "ostro/tokenizer/unicode/base64.h"

#include <fmt/core.h>

#include <cstdint>

namespace ostro::tokenizer {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      out.push_back(i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63]);
  }
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  const size_t given = text.size();
  while (text.ends_with('=') && given - text.size() < 2) text.remove_suffix(1);
  if (given % 4 != 0) return corrupt(fmt::format("base64: {} characters, expected a multiple of 4", given));
  std::string out;
  out.reserve(given / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos)
      return corrupt(fmt::format("base64: byte {} is not a base64 digit", static_cast<int>(c)));
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  return out;
}

}  // namespace ostro::tokenizer
