// to_hex_digits, from_hex_digits: bytes as hexadecimal digits. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ostro {

// Lower-case hexadecimal digits of bytes, and back; nothing when they are none. Upper-case ones are none:
// bytes have one text, so that a signed text with another one is found.
std::string to_hex_digits(std::string_view bytes);
std::optional<std::string> from_hex_digits(std::string_view digits);

}  // namespace ostro
