// code_point_class: the classes of a code point, from generated tables (scripts/make_unicode_tables.py says
// where they come from).
#pragma once

#include <cstdint>

#include "ostro/tokenizer/unicode/unicode_tables.inc"

namespace ostro::tokenizer {

inline constexpr uint8_t kLetter = 1;  // \p{L}
inline constexpr uint8_t kNumber = 2;  // \p{N}
inline constexpr uint8_t kSpace = 4;   // \s
inline constexpr uint8_t kWord = 8;    // \w, what a single_word added token must not touch
// The two halves of words in patterns that cut before capitals. Letters without case and marks are in both.
inline constexpr uint8_t kUpper = 16;        // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
inline constexpr uint8_t kLower = 32;        // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
inline constexpr uint8_t kPunctuation = 64;  // \p{P}
inline constexpr uint8_t kSymbol = 128;      // \p{S}

// The class bits of a code point (at most U+10FFFF).
inline uint8_t code_point_class(uint32_t c) {
  return kUnicodeStage2[kUnicodeStage1[c >> 7] * 128u + (c & 127u)];
}

}  // namespace ostro::tokenizer
