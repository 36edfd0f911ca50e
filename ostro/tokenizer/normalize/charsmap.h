// Charsmap: SentencePiece's precompiled normalization rules, a double-array trie (Yata et al., as in
// Darts-clone) that maps byte strings to replacements. Immutable, so threads may share it.
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
    size_t length = 0;             // length of the key in bytes; 0: no rule
    std::string_view replacement;  // lies in the Charsmap
  };

  // Parses the binary form: u32 size of the array, the array (u32 little-endian units), then the
  // replacements, each ended by a zero byte. Error: kCorrupt if these parts do not fit together.
  static Result<Charsmap> parse(std::string_view bytes);

  // The rule with the longest key at the beginning of the text. SentencePiece uses this one.
  Rule longest(std::string_view text) const { return find(text, false); }
  // The rule with the shortest key there. Hugging Face's Precompiled uses this one.
  Rule shortest(std::string_view text) const { return find(text, true); }

  // True if some key begins with these bytes.
  bool begins_key(std::string_view bytes) const;

  // Appends the text as Hugging Face's Precompiled normalizer changes it. A grapheme cluster of fewer than
  // six bytes is replaced as a whole if a rule's key begins it. Other text is replaced code point by code
  // point.
  void append_by_clusters(std::string_view text, std::string& out) const;

 private:
  Rule find(std::string_view text, bool stop_at_first) const;

  // Bytes where append_by_clusters() must look closer: non-ASCII bytes, bytes with a rule, and a carriage
  // return, which forms a cluster with a following line feed.
  ByteSet changing_;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace ostro::tokenizer
