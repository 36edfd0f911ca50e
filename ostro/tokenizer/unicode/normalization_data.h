// norm_bits and others: properties of code points that the normalizers need, from generated tables
// (scripts/make_normalization_tables.py says where they come from). Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace ostro::tokenizer {

// The low four bits of norm_bits: the part of a code point in grapheme clusters.
enum class Grapheme : uint8_t {
  kOther,
  kCr,
  kLf,
  kControl,
  kExtend,
  kZwj,
  kRegional,
  kPrepend,
  kSpacingMark,
  kHangulL,
  kHangulV,
  kHangulT,
  kHangulLv,
  kHangulLvt,
  kPictographic,
};
inline constexpr uint16_t kGraphemeBits = 0xF;
inline constexpr uint16_t kIndicConsonant = 1 << 4;  // InCB=Consonant
inline constexpr uint16_t kIndicLinker = 1 << 5;     // InCB=Linker
// Set if the normal form changes the code point by itself.
inline constexpr uint16_t kChangesNfd = 1 << 6;
inline constexpr uint16_t kChangesNfkd = 1 << 7;
inline constexpr uint16_t kChangesNfc = 1 << 8;
inline constexpr uint16_t kChangesNfkc = 1 << 9;
inline constexpr uint16_t kComposesBack = 1 << 10;  // may compose with the code point before it
inline constexpr uint16_t kHasLower = 1 << 11;
inline constexpr uint16_t kMark = 1 << 12;           // category M
inline constexpr uint16_t kIsPunctuation = 1 << 13;  // cut out by the Punctuation pre-tokenizer
inline constexpr uint16_t kIsDigit = 1 << 14;        // cut out by the Digits pre-tokenizer

// Bits of a code point (at most U+10FFFF).
uint16_t norm_bits(uint32_t c);

// Canonical combining class; 0 for starters.
uint8_t combining_class(uint32_t c);

// Appends the full canonical or compatibility decomposition, or c itself if it has none.
void append_decomposition(uint32_t c, bool compatible, std::u32string& out);

// The composite of two code points, or 0.
uint32_t composed(uint32_t first, uint32_t second);

// The lower case of one code point; U+0130 alone has two (i and U+0307), of which this is the first.
uint32_t lower_case(uint32_t c);

}  // namespace ostro::tokenizer
