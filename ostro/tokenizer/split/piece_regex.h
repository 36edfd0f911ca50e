// PieceRegex: regular expressions as pre-tokenizers of published models have them, for text of any length.
//
// A small part of Oniguruma's language, with its meaning: alternatives, each a row of characters and classes
// with ?, *, + and {n,m}, a $ and looks ahead at one character. Groups and repeated groups are not in it, so
// that the time for a match grows with its length only. splitter.h has faster code for the most used ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace ostro::tokenizer {

// Immutable, so threads may share it.
class PieceRegex {
 public:
  // Nothing if the expression has something else, or if it could match an empty text.
  static std::optional<PieceRegex> parse(std::string_view regex);

  // The end of the match that begins at i, or i if there is none. The text is valid UTF-8.
  size_t match(std::string_view text, size_t i) const;

  // Where the next match may begin if none begins at i (< text.size()).
  size_t retry(std::string_view text, size_t i) const;

 private:
  class Parser;

  // A set of characters.
  struct Set {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    uint8_t classes = 0;  // code points of a class (unicode.h)
    bool marks = false;   // category M
    bool negated = false;
    std::array<bool, 128> ascii{};  // which ASCII characters are in it, by all of the above

    bool holds(uint32_t c) const { return c < ascii.size() ? ascii[c] : looked_up(c); }
    bool looked_up(uint32_t c) const;
    void finish();  // fills `ascii`
  };
  enum class Kind { kCharacters, kEndOfLine, kAhead, kNotAhead };
  struct Item {
    Kind kind = Kind::kCharacters;
    Set set;
    size_t least = 1, most = 1;
    bool keeps = false;  // possessive: what it took is not given back
  };
  using Row = std::vector<Item>;

  static bool row_matches(const Row& row, size_t item, std::string_view text, size_t i, size_t& end);

  std::vector<Row> rows_;  // in the order in which they are tried
};

}  // namespace ostro::tokenizer
