// SentencePiece's precompiled normalization rules: a double array (Yata et al., as in Darts-clone) from byte
// strings to replacements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/unicode/byte_set.h"

namespace ostro::tokenizer {

class Charsmap {
 public:
  struct Rule {
    size_t length = 0;  // bytes of the key; 0: no rule
    std::string_view replacement;
  };

  // Reads the bytes: u32 size of the array, the array (u32 little-endian units), then the replacements, each
  // ended by a zero byte. kCorrupt when they do not fit together.
  static Result<Charsmap> parse(std::string_view bytes);

  // The rule with the longest key that begins the text: SentencePiece's choice.
  Rule longest(std::string_view text) const { return find(text, false); }
  // The one with the shortest key: the choice of Hugging Face's Precompiled.
  Rule shortest(std::string_view text) const { return find(text, true); }

  // Whether some key begins with these bytes.
  bool begins_key(std::string_view bytes) const;

  // Appends the text as Hugging Face's Precompiled normalizer changes it: a grapheme cluster of less than six
  // bytes as a whole when a rule's key begins it, otherwise code point by code point.
  void append_by_clusters(std::string_view text, std::string& out) const;

 private:
  Rule find(std::string_view text, bool stop_at_first) const;

  // Bytes at which append_by_clusters() must look: not ASCII, replaced, or (a carriage return) of a cluster
  // with the next.
  ByteSet changing_;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace ostro::tokenizer
