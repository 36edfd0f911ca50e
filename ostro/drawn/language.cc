#include "ostro/drawn/language.h"

#include "ostro/drawn/draws.h"

namespace ostro::drawn {
namespace {

// Word `number` of a class: consonants and vowels in turn, drawn from the word's own key.
std::string word(const char* of_class, uint32_t topic, uint32_t number) {
  constexpr const char* kBegins[] = {"b", "d", "f", "g", "k", "l",  "m",  "n",
                                     "p", "r", "s", "t", "v", "st", "tr", "pl"};
  constexpr const char* kVowels[] = {"a", "e", "i", "o", "u", "ai", "ou", "ea"};
  constexpr const char* kEnds[] = {"", "", "", "n", "r", "l", "m", "nd"};
  numerics::Key key = numerics::fold_in(numerics::key_from_seed(0), "drawn language");
  Draws draws(numerics::fold_in(numerics::fold_in(numerics::fold_in(key, of_class), topic), number));
  std::string out;
  const uint32_t syllables = draws.between(2, 3);
  for (uint32_t i = 0; i < syllables; ++i) {
    out += kBegins[draws.below(16)];
    out += kVowels[draws.below(8)];
  }
  return out + kEnds[draws.below(8)];
}

}  // namespace

std::string noun(uint32_t topic, uint32_t number) { return word("noun", topic, number); }
std::string verb(uint32_t topic, uint32_t number) { return word("verb", topic, number); }
std::string adjective(uint32_t number) { return word("adjective", 0, number); }
std::string name(uint32_t number) { return capital(word("name", 0, number)); }

// 7 has no common divisor with 24, so each noun is what exactly one other is made of.
uint32_t made_of(uint32_t number) { return (7 * number + 3) % kNouns; }
uint32_t quality_of(uint32_t topic, uint32_t number) { return (5 * number + topic) % kAdjectives; }

std::string capital(std::string word) {
  if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

}  // namespace ostro::drawn
