// SimplePattern: the patterns of normalizers, Split pre-tokenizers and decoders: a fixed string, or a
// repeated character or character class. (splitter.h has the large splitting expressions.)
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::tokenizer {

class SimplePattern {
 public:
  // Reads {"String": "x"} or {"Regex": "x{2,}"}. A regular expression may be literal text with escapes, or
  // one of: a character, \s, \p{L} or \p{N}, alone or with +, {n}, {n,} or {n,m}. Others are kUnsupported.
  static Result<SimplePattern> from_json(const nlohmann::json& pattern, std::string_view where);

  // The end of the match that begins at i, or i if there is none (a match is never empty). The text is valid
  // UTF-8.
  size_t match(std::string_view text, size_t i) const;

  // A position from i on, at most text.size(). No match begins before it.
  size_t next(std::string_view text, size_t i) const {
    if (!literal_.empty()) return std::min(text.find(literal_, i), text.size());
    const bool ascii = classes_ == 0 && character_ < 0x80;
    return ascii ? std::min(text.find(static_cast<char>(character_), i), text.size()) : i;
  }

  // Appends the text with every match replaced, from left to right.
  void replace(std::string_view text, std::string_view by, std::string& out) const;

 private:
  std::string literal_;          // this text; if it is empty:
  uint8_t classes_ = 0;          // code points of a class (unicode.h); if that is 0:
  uint32_t character_ = 0;       // this code point,
  size_t least_ = 1, most_ = 1;  // repeated this often
};

}  // namespace ostro::tokenizer
