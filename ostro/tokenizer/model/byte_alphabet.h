// The byte-level alphabet of GPT-2: every byte has a printable character, in which tokenizer.json writes
// tokens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ostro::tokenizer {

// The code point that stands for a byte: itself for ! to ~, U+00A1 to U+00AC and U+00AE to U+00FF; the other
// 68 bytes have U+0100 onwards, in order.
uint32_t byte_character(uint8_t byte);

// All bytes in the order of their characters; trained tokenizers number the single-byte tokens so.
std::array<uint8_t, 256> bytes_by_character();

// Bytes as tokenizer.json writes them.
std::string bytes_to_characters(std::string_view bytes);

// The bytes that valid UTF-8 text stands for, or nothing when a character is not in the alphabet.
std::optional<std::string> characters_to_bytes(std::string_view text);

}  // namespace ostro::tokenizer
