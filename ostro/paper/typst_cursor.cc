#include "ostro/paper/typst_cursor.h"

namespace ostro::paper {

void TypstCursor::skip_past(std::string_view word) {
  const size_t found = text_.find(word, at_);
  skip_to(found == std::string::npos ? text_.size() : found + word.size());
}

void TypstCursor::skip_names() {
  while (is_of_name(peek()) || ((peek() == '.' || peek() == ':') && is_of_name(peek(1)))) ++at_;
}

void TypstCursor::skip_blanks() {
  while (is_blank(peek())) ++at_;
}

bool TypstCursor::comment() {
  if (sees("//")) {
    skip_to(text_.find('\n', at_));
    return true;
  }
  if (!sees("/*")) return false;
  int depth = 0;
  do {
    if (sees("/*")) {
      ++depth;
      at_ += 2;
    } else if (sees("*/")) {
      --depth;
      at_ += 2;
    } else {
      ++at_;
    }
  } while (depth > 0 && at_ < text_.size());
  skip_to(at_);
  return true;
}

void TypstCursor::raw() {
  size_t ticks = 0;
  for (; peek() == '`'; ++at_) ++ticks;
  if (ticks != 2) skip_past(std::string(ticks, '`'));
}

void TypstCursor::string() {
  for (++at_; at_ < text_.size() && peek() != '"'; ++at_)
    if (peek() == '\\') ++at_;
  skip_to(at_ + 1);
}

}  // namespace ostro::paper
