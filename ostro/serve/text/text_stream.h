// TextStream: the text of an answer while its tokens are made: whole characters, and nothing that a stop
// string may yet take back.
//
// Bytes that begin a character are held until the character is whole; bytes that are no UTF-8 become U+FFFD.
// The text ends before the stop string that ends first in it (of those that end together, the longest), so
// how the text was cut into tokens does not matter. A token costs the same however long the text is. Not
// thread-safe; the tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::serve {

// The bytes at the end of `bytes` that begin a character and do not end it.
size_t unfinished_bytes(std::string_view bytes);

class TextStream {
 public:
  // A token's text can depend on those before it, so the prompt's are known, too.
  static Result<TextStream> create(const tokenizer::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                                   std::vector<std::string> stops);

  // One more token, whose text is left out if it is a special one. Error: an id that is no token.
  Status add(int32_t token);
  // No token comes any more: what was held belongs to the text.
  void finish();
  bool is_stopped() const { return stopped_; }

  // What of the text became certain since the last call.
  std::string take();
  // The text of all tokens in whole characters, also what is not certain.
  std::string_view all() const { return text_; }
  int64_t characters() const { return characters_; }  // of all()
  // All that is certain.
  std::string_view text() const { return std::string_view(text_).substr(0, certain_); }

 private:
  TextStream(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops)
      : tokenizer_(&tokenizer), stops_(std::move(stops)) {}
  // Leaves of `recent_` what is needed.
  Status forget();
  // The bytes of a token after those of `recent_`.
  Result<std::string> bytes_of(int32_t token);
  // Bytes that come behind the text: whole characters, or the last of all.
  void append(std::string_view bytes, bool is_all);

  const tokenizer::Tokenizer* tokenizer_;
  std::vector<std::string> stops_;
  std::vector<uint32_t> recent_;   // the last tokens, as many as the text of the next one can depend on
  std::string text_, unfinished_;  // of the answer; bytes that begin a character are in `unfinished_`
  int64_t characters_ = 0;
  size_t certain_ = 0, taken_ = 0;
  bool stopped_ = false;
};

}  // namespace ostro::serve
