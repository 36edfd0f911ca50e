// Tokens that are found in the text before it is split: special tokens such as <|endoftext|> and other added
// ones.
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
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the spaces before it
  bool rstrip = false;       // takes the spaces after it
  bool normalized = false;   // found in a second pass, after all tokens that are not
  bool special = false;      // can be left out of decoded text
};

// A part of the text: an added token, or text between added tokens (token == nullptr, not empty).
struct Segment {
  const AddedToken* token;
  std::string_view text;
};

// Finds a set of added tokens: leftmost first, the longest of those that begin at one place.
class AddedTokenMatcher {
 public:
  // Keeps pointers to the tokens, which must outlive it.
  explicit AddedTokenMatcher(std::vector<const AddedToken*> tokens);

  bool empty() const { return tokens_.empty(); }

  // Appends the segments of valid UTF-8 text. Special tokens stay ordinary text when !match_special.
  void split(std::string_view text, bool match_special, std::vector<Segment>& out) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t begin) const;

  ByteSet beginnings_;                     // of the tokens
  std::vector<const AddedToken*> tokens_;  // by first byte, longest first
  std::array<uint32_t, 257> first_{};      // tokens_[first_[b] .. first_[b + 1]) begin with byte b
};

}  // namespace ostro::tokenizer
