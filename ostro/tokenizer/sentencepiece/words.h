// Words as SentencePiece writes them, spaces (U+2581) before their letters: where a vocabulary has no token
// that goes on behind the end of a word, a text's ids are those of its words.
#pragma once

#include <cstddef>
#include <string_view>

#include "ostro/tokenizer/bpe/piece_memory.h"

namespace ostro::tokenizer {

// What SentencePiece writes for a space: U+2581.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

// The first U+2581 from `begin` on; text.size() when there is none.
size_t find_space_symbol(std::string_view text, size_t begin);

// The end of the word that begins at `begin` (below text.size()): the next U+2581 behind something else.
size_t word_end(std::string_view text, size_t begin);

// Calls word(text, place) for every word, none empty; end_of(begin) says where the one that begins there
// ends. The places of many words are asked for before the first is used: their way from memory overlaps.
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
