// AddedTokenMatcher: finds added tokens, which are searched in the text before it is split, for example
// special tokens such as <|endoftext|>.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/unicode/byte_set.h"

namespace ostro::tokenizer {

// An entry of "added_tokens" in tokenizer.json.
struct AddedToken {
  uint32_t id = 0;
  std::string content;       // UTF-8
  bool single_word = false;  // matches only if no word character is next to it
  bool lstrip = false;       // the match includes the spaces before it
  bool rstrip = false;       // the match includes the spaces after it
  bool normalized = false;   // searched in normalized text, in a second pass after the others
  bool special = false;      // decode can leave it out
};

// A part of the text: an added token, or the text between two added tokens, which is never empty.
struct Segment {
  const AddedToken* token;  // nullptr: the text between two added tokens
  std::string_view text;    // a view into the text that was split
};

// Finds added tokens in text: leftmost first, and of those that begin at one position the longest. Immutable,
// so threads may share it.
class AddedTokenMatcher {
 public:
  // Keeps pointers to the tokens, which must outlive it.
  explicit AddedTokenMatcher(std::vector<const AddedToken*> tokens);

  bool empty() const { return tokens_.empty(); }

  // Appends the segments of valid UTF-8 text. With match_special false, special tokens are treated as normal
  // text.
  void split(std::string_view text, bool match_special, std::vector<Segment>& out) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t begin) const;

  ByteSet beginnings_;                     // first bytes of the tokens
  std::vector<const AddedToken*> tokens_;  // by first byte, longest first
  std::array<uint32_t, 257> first_{};      // tokens_[first_[b] .. first_[b + 1]) begin with byte b
};

}  // namespace ostro::tokenizer
