#include "ostro/paper/typed_digits.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "ostro/paper/typed_digit_reader.h"

namespace ostro::paper {

std::vector<TypedNumber> TypedDigitReader::read() {
  while (!is_at_end()) {
    markup();
    if (!is_at_end()) ++at_;  // a bracket that nothing opened
  }
  return std::move(found_);
}

void TypedDigitReader::markup() {
  line_begin();
  for (int depth = 0; at_ < text_.size();) {
    const char c = peek();
    if (c == ']' && depth == 0) return;
    if (c == '\n') {
      ++at_;
      line_begin();
    } else if (sees("http://") || sees("https://")) {
      while (at_ < text_.size() && !is_blank(peek()) && peek() != '\n' && peek() != ']' && peek() != ')')
        ++at_;
    } else if (c == '\\') {
      if (sees("\\u{"))
        skip_past("}");
      else
        skip_to(at_ + 2);
    } else if (comment()) {
    } else if (c == '`') {
      raw();
    } else if (c == '$') {
      formula();
    } else if (c == '#') {
      embedded();
    } else if (c == '@' && is_of_name(peek(1))) {
      ++at_;
      skip_names();
    } else if (c == '<' && is_of_name(peek(1))) {
      const size_t begin = at_++;
      skip_names();
      if (peek() != '>') at_ = begin + 1;
    } else if (is_digit(c)) {
      number();
    } else {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      ++at_;
    }
  }
}

void TypedDigitReader::line_begin() {
  skip_blanks();
  const size_t begin = at_;
  while (peek() == '=') ++at_;
  const bool heading = at_ > begin && is_blank(peek());
  if (!heading) at_ = begin;
  if (heading) skip_blanks();
  const size_t number = at_;
  while (is_digit(peek()) || (peek() == '.' && at_ > number)) ++at_;
  const std::string_view digits = std::string_view(text_).substr(number, at_ - number);
  size_t word = at_;
  while (word < text_.size() && is_blank(text_[word])) ++word;
  const bool is_small = word < text_.size() && text_[word] >= 'a' && text_[word] <= 'z';
  const bool is_number =
      heading ? digits.find('.') != std::string_view::npos && !is_small : digits.ends_with('.');
  if (!is_number || !is_blank(peek())) at_ = number;
}

void TypedDigitReader::formula() {
  for (++at_; at_ < text_.size() && peek() != '$';) {
    if (peek() == '\\') {
      skip_to(at_ + 2);
    } else if (peek() == '#') {
      embedded();
    } else if (comment()) {
    } else if (peek() == '_') {
      for (++at_; is_digit(peek());) ++at_;  // an index
    } else if (is_digit(peek())) {
      number();
    } else {
      ++at_;
    }
  }
  skip_to(at_ + 1);
}

void TypedDigitReader::embedded() {
  ++at_;
  if (is_digit(peek())) return number();
  if (peek() == '"') return numbers_of_string(/*in_code=*/false);
  expression();
}

void TypedDigitReader::number(bool in_code) {
  const size_t begin = at_;
  while (is_digit(peek()) || ((peek() == '.' || (peek() == ',' && !in_code)) && is_digit(peek(1)))) ++at_;
  add(begin, at_, in_code);
}

void TypedDigitReader::numbers_of_string(bool in_code) {
  const size_t begin = at_;
  string();
  const size_t end = at_;
  for (at_ = begin; at_ < end;)
    if (is_digit(peek()))
      number(in_code);
    else
      ++at_;
}

void TypedDigitReader::add(size_t begin, size_t end, bool in_code) {
  const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
  found_.push_back({line, text_.substr(begin, end - begin), in_code});
}

std::vector<TypedNumber> typed_digits(const std::string& text) { return TypedDigitReader(text).read(); }

}  // namespace ostro::paper
