// byte_character and others: the byte-level alphabet of GPT-2. Every byte has a printable character;
// tokenizer.json writes tokens with these characters. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ostro::tokenizer {

// The code point for a byte. Bytes ! to ~, 0xA1 to 0xAC and 0xAE to 0xFF stand for themselves. The other 68
// bytes get U+0100 and up, in order.
uint32_t byte_character(uint8_t byte);

// All bytes, sorted by their characters. Trained tokenizers number the single-byte tokens in this order.
std::array<uint8_t, 256> bytes_by_character();

// Bytes as text in the byte-level alphabet.
std::string bytes_to_characters(std::string_view bytes);

// Returns the bytes of valid UTF-8 text in the alphabet, or nothing if a character is not in the alphabet.
std::optional<std::string> characters_to_bytes(std::string_view text);

}  // namespace ostro::tokenizer
