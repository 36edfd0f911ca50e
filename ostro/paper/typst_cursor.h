// TypstCursor: a place in the text of a Typst document, which moves forward over what has a fixed form.
// Private to the room. None of its functions fails: of a wrong document Typst says what is wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ostro::paper {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
inline bool is_of_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The text must outlive it.
class TypstCursor {
 public:
  explicit TypstCursor(const std::string& text) : text_(text) {}

 protected:
  bool is_at_end() const { return at_ >= text_.size(); }
  // The character so much further; 0 behind the end.
  char peek(size_t further = 0) const { return at_ + further < text_.size() ? text_[at_ + further] : '\0'; }
  bool sees(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }

  void skip_to(size_t place) { at_ = std::min(place, text_.size()); }
  // To the end if the word does not come.
  void skip_past(std::string_view word);
  // Over names that points and colons join.
  void skip_names();
  void skip_blanks();

  // Passes over a comment; false: none begins here.
  bool comment();
  // Raw text, from its first "`" on.
  void raw();
  // A text in quotes.
  void string();

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace ostro::paper
