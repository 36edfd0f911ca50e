// SimplePattern: the patterns of normalizers, Split pre-tokenizers and decoders: a fixed string, a repeated
// character or character class, or an expression that PieceRegex knows. (splitter.h has fast code for the
// splitting expressions of many models.) Immutable, so threads may share it.
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/tokenizer/split/piece_regex.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {

class SimplePattern {
 public:
  // Reads {"String": "x"} or {"Regex": "x{2,}"}. A regular expression may be literal text with escapes, or
  // one of: a character, \s, \p{L} or \p{N}, alone or with +, {n}, {n,} or {n,m}, or what PieceRegex knows.
  // Others are kUnsupported.
  static Result<SimplePattern> from_json(const nlohmann::json& pattern, std::string_view where);

  // The end of the match that begins at i, or i if there is none (a match is never empty). The text is valid
  // UTF-8.
  size_t match(std::string_view text, size_t i) const;

  // A position from i on, at most text.size(). No match begins before it.
  size_t next(std::string_view text, size_t i) const {
    if (!literal_.empty()) return std::min(text.find(literal_, i), text.size());
    const bool ascii = !regex_ && classes_ == 0 && character_ < 0x80;
    return ascii ? std::min(text.find(static_cast<char>(character_), i), text.size()) : i;
  }

  // Where the search goes on after no match was found at i (< text.size()).
  size_t retry(std::string_view text, size_t i) const {
    return regex_ ? regex_->retry(text, i) : i + read_code_point(text.data() + i).length;
  }

  // Appends the text with every match replaced, from left to right.
  void replace(std::string_view text, std::string_view by, std::string& out) const;

 private:
  static bool take_simple(std::string_view regex, SimplePattern& out);

  std::string literal_;              // this text; if it is empty:
  std::optional<PieceRegex> regex_;  // this expression; if there is none:
  uint8_t classes_ = 0;              // code points of a class (unicode.h); if that is 0:
  uint32_t character_ = 0;           // this code point,
  size_t least_ = 1, most_ = 1;      // repeated this often
};

}  // namespace ostro::tokenizer
