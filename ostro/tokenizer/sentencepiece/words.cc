#include "ostro/tokenizer/sentencepiece/words.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

namespace ostro::tokenizer {

size_t find_space_symbol(std::string_view text, size_t i) {
  const auto at = [&](size_t from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text.data() + from));
  };
  const auto all = [](char byte) { return _mm256_set1_epi8(byte); };
  const __m256i first = all(kSpaceSymbol[0]), second = all(kSpaceSymbol[1]), third = all(kSpaceSymbol[2]);
  for (; i + 34 <= text.size(); i += 32) {
    const __m256i found = _mm256_and_si256(
        _mm256_cmpeq_epi8(at(i), first),
        _mm256_and_si256(_mm256_cmpeq_epi8(at(i + 1), second), _mm256_cmpeq_epi8(at(i + 2), third)));
    const auto mask = static_cast<uint32_t>(_mm256_movemask_epi8(found));
    if (mask != 0) return i + static_cast<size_t>(std::countr_zero(mask));
  }
  return std::min(text.find(kSpaceSymbol, i), text.size());
}

size_t word_end(std::string_view text, size_t i) {
  while (text.substr(i).starts_with(kSpaceSymbol)) i += kSpaceSymbol.size();
  return find_space_symbol(text, i);
}

}  // namespace ostro::tokenizer
