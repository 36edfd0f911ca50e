#include "ostro/tokenizer/sentencepiece/words.h"

#include <doctest/doctest.h>

#include <string>

namespace ostro::tokenizer {

TEST_CASE("words begin at spaces behind something else, wherever in the text they are") {
  for (size_t before = 0; before < 70; ++before) {
    for (const size_t behind : {0, 1, 2, 40}) {
      const std::string first = std::string(before, 'x') + "\xE2\x96y\xE2\x81", rest(behind, 'z');
      const std::string text = "\u2581\u2581" + first + "\u2581\u2581" + rest;
      CHECK(word_end(text, 0) == 6 + first.size());
      CHECK(word_end(text, 6 + first.size()) == text.size());
      CHECK(find_space_symbol(text, 6) == 6 + first.size());
      CHECK(find_space_symbol(rest, 0) == rest.size());
    }
  }
}

}  // namespace ostro::tokenizer
