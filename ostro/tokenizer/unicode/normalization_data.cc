#include "ostro/tokenizer/unicode/normalization_data.h"

#include <algorithm>
#include <iterator>

namespace ostro::tokenizer {
namespace {

// Code points first, first + stride ... last, whose lower case is `delta` away.
struct LowerRun {
  uint32_t first, last, stride;
  int32_t delta;
};

#include "ostro/tokenizer/unicode/normalization_tables.inc"

constexpr uint32_t kHangulS = 0xAC00, kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7;
constexpr uint32_t kVowels = 21, kTails = 28, kSyllables = 19 * kVowels * kTails;

uint8_t record(uint32_t c) { return kNormStage2[kNormStage1[c >> 7] * 128u + (c & 127u)]; }

// The place of c in a sorted table, or nullptr.
template <size_t N>
const uint32_t* find(const uint32_t (&keys)[N], uint32_t c) {
  const auto* it = std::lower_bound(std::begin(keys), std::end(keys), c);
  return it != std::end(keys) && *it == c ? it : nullptr;
}

void append_place(uint32_t place, std::u32string& out) {
  for (uint32_t i = 0; i < (place & 31); ++i) out.push_back(kDecomposed[(place >> 5) + i]);
}

}  // namespace

uint16_t norm_bits(uint32_t c) { return kNormBits[record(c)]; }

uint8_t combining_class(uint32_t c) { return kNormClass[record(c)]; }

void append_decomposition(uint32_t c, bool compatible, std::u32string& out) {
  if (c - kHangulS < kSyllables) {
    const uint32_t s = c - kHangulS, tail = s % kTails;
    out.push_back(kHangulL + s / (kVowels * kTails));
    out.push_back(kHangulV + s / kTails % kVowels);
    if (tail != 0) out.push_back(kHangulT + tail);
    return;
  }
  if (compatible) {
    if (const uint32_t* key = find(kCompatibleKeys, c))
      return append_place(kCompatiblePlaces[key - kCompatibleKeys], out);
  }
  if (const uint32_t* key = find(kCanonicalKeys, c))
    return append_place(kCanonicalPlaces[key - kCanonicalKeys], out);
  out.push_back(c);
}

uint32_t composed(uint32_t first, uint32_t second) {
  if (first - kHangulL < 19 && second - kHangulV < kVowels)
    return kHangulS + ((first - kHangulL) * kVowels + (second - kHangulV)) * kTails;
  if (first - kHangulS < kSyllables && (first - kHangulS) % kTails == 0 && second - kHangulT - 1 < kTails - 1)
    return first + (second - kHangulT);
  const uint64_t key = uint64_t{first} << 32 | second;
  const auto* it = std::lower_bound(std::begin(kComposedKeys), std::end(kComposedKeys), key);
  return it != std::end(kComposedKeys) && *it == key ? kComposed[it - kComposedKeys] : 0;
}

uint32_t lower_case(uint32_t c) {
  if (c == 0x130) return 'i';
  const auto* run = std::upper_bound(std::begin(kLowerRuns), std::end(kLowerRuns), c,
                                     [](uint32_t value, const LowerRun& r) { return value < r.first; });
  if (run == std::begin(kLowerRuns)) return c;
  --run;
  const bool in_run = c <= run->last && (c - run->first) % run->stride == 0;
  return in_run ? static_cast<uint32_t>(static_cast<int32_t>(c) + run->delta) : c;
}

}  // namespace ostro::tokenizer
