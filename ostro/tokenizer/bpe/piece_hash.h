// hash_bytes, hash_block: hashes of pieces of text, 16 bytes at a time by wide multiplication. A hash only
// selects a slot. A lookup always compares the bytes, so hashes cannot change results.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ostro::tokenizer {

// The xor of the two halves of a 128-bit product.
inline uint64_t fold_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The 8 bytes at p, in the byte order of the machine.
inline uint64_t load_word(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

// The hash of the 32 bytes at p.
inline uint64_t hash_block(const char* p) {
  return fold_product(load_word(p) ^ 0x9E3779B97F4A7C15u, load_word(p + 8) ^ 0xD6E8FEB86659FD93u) ^
         fold_product(load_word(p + 16) ^ 0xA0761D6478BD642Fu, load_word(p + 24) ^ 0xE7037ED1A0B428DBu);
}

// The hash of a text of any length; reads no byte after it.
inline uint64_t hash_bytes(std::string_view bytes) {
  uint64_t h = bytes.size();
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left > 16; p += 16, left -= 16)
    h = fold_product(load_word(p) ^ h, load_word(p + 8) ^ 0xD6E8FEB86659FD93u);
  uint64_t words[2] = {0, 0};
  std::memcpy(words, p, left);
  return fold_product(words[0] ^ h ^ 0x9E3779B97F4A7C15u, words[1] ^ 0xA0761D6478BD642Fu);
}

}  // namespace ostro::tokenizer
