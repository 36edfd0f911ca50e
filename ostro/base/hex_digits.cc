#include "ostro/base/hex_digits.h"

#include <fmt/format.h>

#include <charconv>

namespace ostro {

std::string to_hex_digits(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::optional<std::string> from_hex_digits(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const auto read = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    if (read.ec != std::errc() || read.ptr != digits.data() + i + 2) return std::nullopt;
    out += static_cast<char>(value);
  }
  return out;
}

}  // namespace ostro
