#include "ostro/tokenizer/model/byte_alphabet.h"

#include <algorithm>

#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr bool prints_as_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<uint16_t, 256> make_characters() {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    characters[byte] = prints_as_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}

constexpr std::array<uint16_t, 256> kCharacters = make_characters();
constexpr uint32_t kEnd = 0x100 + 68;  // one past the last character of the alphabet

constexpr std::array<int16_t, kEnd> make_bytes() {
  std::array<int16_t, kEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (int16_t byte = 0; byte < 256; ++byte) bytes[kCharacters[static_cast<size_t>(byte)]] = byte;
  return bytes;
}

constexpr std::array<int16_t, kEnd> kByteOfCharacter = make_bytes();

}  // namespace

uint32_t byte_character(uint8_t byte) { return kCharacters[byte]; }

std::array<uint8_t, 256> bytes_by_character() {
  std::array<uint8_t, 256> bytes{};
  for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  std::sort(bytes.begin(), bytes.end(), [](uint8_t a, uint8_t b) { return kCharacters[a] < kCharacters[b]; });
  return bytes;
}

std::string bytes_to_characters(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_utf8(byte_character(static_cast<uint8_t>(byte)), out);
  return out;
}

std::optional<std::string> characters_to_bytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = read_code_point(text.data() + i);
    if (c.value >= kEnd || kByteOfCharacter[c.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(kByteOfCharacter[c.value]));
    i += c.length;
  }
  return out;
}

}  // namespace ostro::tokenizer
