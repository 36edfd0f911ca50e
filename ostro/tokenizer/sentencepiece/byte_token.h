// byte_token, byte_of_token: tokens that stand for single bytes, "<0x00>" to "<0xFF>". Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ostro::tokenizer {

// The token of a byte, with capital hexadecimal letters.
std::string byte_token(uint8_t byte);

// The byte, or nothing if the text is not such a token. The hexadecimal letters may be lower case.
std::optional<uint8_t> byte_of_token(std::string_view token);

}  // namespace ostro::tokenizer
