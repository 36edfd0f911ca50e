// word_end, for_each_word: words as SentencePiece writes them, with spaces (U+2581) before the letters of a
// word. If no token of a vocabulary extends past the end of a word, each word can be encoded alone. The
// functions hold no state but the caller's PieceMemory.
#pragma once

#include <cstddef>
#include <string_view>

#include "ostro/tokenizer/bpe/piece_memory.h"

namespace ostro::tokenizer {

// SentencePiece writes a space as U+2581.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

// The first U+2581 from `begin` on; text.size() when there is none.
size_t find_space_symbol(std::string_view text, size_t begin);

// The end of the word that begins at `begin` (below text.size()): the next U+2581 that follows another
// character.
size_t word_end(std::string_view text, size_t begin);

// Calls word(text, place) for every word; no word is empty. end_of(begin) gives the end of the word that
// begins there. The cache slots of several words are prefetched before the first is used, so that memory
// accesses overlap.
template <typename EndOf, typename Word>
void for_each_word(std::string_view text, PieceMemory& memory, const EndOf& end_of, const Word& word) {
  constexpr size_t kAhead = 16;
  PieceMemory::Place places[kAhead];
  std::string_view words[kAhead];
  for (size_t begin = 0; begin < text.size();) {
    size_t count = 0;
    for (; count < kAhead && begin < text.size(); ++count) {
      const size_t end = end_of(begin);
      words[count] = text.substr(begin, end - begin);
      memory.find(words[count], text.size() - begin, places[count]);
      begin = end;
    }
    for (size_t i = 0; i < count; ++i) word(words[i], places[i]);
  }
}

}  // namespace ostro::tokenizer
