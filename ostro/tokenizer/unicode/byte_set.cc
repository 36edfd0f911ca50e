#include "ostro/tokenizer/unicode/byte_set.h"

#include <immintrin.h>

#include <bit>

namespace ostro::tokenizer {
namespace {

__m256i twice(const std::array<uint8_t, 16>& row) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row.data())));
}

}  // namespace

void ByteSet::add(uint8_t byte) {
  rows_[byte >> 7][byte & 15] |= static_cast<uint8_t>(1u << (byte >> 4 & 7));
}

size_t ByteSet::find(std::string_view text, size_t i) const {
  const __m256i low_rows = twice(rows_[0]), high_rows = twice(rows_[1]), nibble = _mm256_set1_epi8(0x0F);
  const __m256i bits = twice({1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128});
  for (; i + 32 <= text.size(); i += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text.data() + i));
    const __m256i low = _mm256_and_si256(bytes, nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
    const __m256i row =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(low_rows, low), _mm256_shuffle_epi8(high_rows, low), bytes);
    const __m256i found = _mm256_and_si256(row, _mm256_shuffle_epi8(bits, high));
    const auto none =
        static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(found, _mm256_setzero_si256())));
    if (none != 0xFFFFFFFF) return i + static_cast<size_t>(std::countr_one(none));
  }
  while (i < text.size() && !contains(text[i])) ++i;
  return i;
}

}  // namespace ostro::tokenizer
