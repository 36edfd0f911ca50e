#include "ostro/paper/typed_digits.h"

#include <algorithm>
#include <string_view>

namespace ostro::paper {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Reads a document as Typst does, as far as it takes to tell text from code. Each function begins at `at_`
// and leaves it behind what it read; none fails: of a wrong document Typst says what is wrong.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  std::vector<TypedNumber> read() {
    while (at_ < text_.size()) {
      markup();
      if (at_ < text_.size()) ++at_;  // a bracket that nothing opened
    }
    return std::move(found_);
  }

 private:
  char peek(size_t further = 0) const { return at_ + further < text_.size() ? text_[at_ + further] : '\0'; }
  bool sees(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }
  void skip_to(size_t place) { at_ = std::min(place, text_.size()); }
  void skip_past(std::string_view word) {
    const size_t found = text_.find(word, at_);
    skip_to(found == std::string::npos ? text_.size() : found + word.size());
  }
  void skip_names() {
    while (is_name(peek()) || ((peek() == '.' || peek() == ':') && is_name(peek(1)))) ++at_;
  }
  void skip_blanks() {
    while (is_blank(peek())) ++at_;
  }

  // Whether it passed over a comment.
  bool comment() {
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

  void raw() {
    size_t ticks = 0;
    for (; peek() == '`'; ++at_) ++ticks;
    if (ticks != 2) skip_past(std::string(ticks, '`'));
  }

  void string() {
    for (++at_; at_ < text_.size() && peek() != '"'; ++at_)
      if (peek() == '\\') ++at_;
    skip_to(at_ + 1);
  }

  void number() {
    const size_t begin = at_;
    while (is_digit(peek()) || ((peek() == '.' || peek() == ',') && is_digit(peek(1)))) ++at_;
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
    found_.push_back({line, text_.substr(begin, at_ - begin)});
  }

  // The number in front of a heading ("= 2.1 Data") or a list item ("3. "), at the beginning of a line.
  void line_begin() {
    skip_blanks();
    const size_t begin = at_;
    while (peek() == '=') ++at_;
    const bool heading = at_ > begin && is_blank(peek());
    if (!heading) at_ = begin;
    if (heading) skip_blanks();
    const size_t number = at_;
    while (is_digit(peek()) || (peek() == '.' && at_ > number)) ++at_;
    const bool ends = is_blank(peek()) && (heading || (at_ > number && text_[at_ - 1] == '.'));
    if (!ends) at_ = number;
  }

  // Text, up to the bracket that closes it.
  void markup() {
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
      } else if (c == '@' && is_name(peek(1))) {
        ++at_;
        skip_names();
      } else if (c == '<' && is_name(peek(1))) {
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

  void formula() {
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

  // Behind "#": code within text.
  void embedded() {
    ++at_;
    if (is_digit(peek())) return number();
    if (peek() == '"') {
      const size_t begin = at_;
      string();
      const size_t end = at_;
      for (at_ = begin; at_ < end;)
        if (is_digit(peek()))
          number();
        else
          ++at_;
      return;
    }
    expression();
  }

  void expression() {
    if (!is_letter(peek()) && peek() != '_') {
      if (group()) calls();
      return;
    }
    const size_t begin = at_;
    while (is_name(peek())) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word == "let" || word == "set" || word == "show" || word == "import" || word == "include" ||
        word == "return")
      return statement();
    if (word == "if" || word == "for" || word == "while") return blocks();
    if (word == "context") {
      skip_blanks();
      return expression();
    }
    calls();
  }

  // What follows a name or a group: fields, arguments, content.
  void calls() {
    for (;;) {
      if (peek() == '.' && (is_letter(peek(1)) || peek(1) == '_')) {
        ++at_;
        while (is_name(peek())) ++at_;
      } else if ((peek() != '(' && peek() != '[') || !group()) {
        return;
      }
    }
  }

  // "(...)", "{...}" or "[...]"; false: none begins here.
  bool group() {
    const char open = peek();
    if (open == '[') {
      ++at_;
      markup();
      skip_to(at_ + 1);
      return true;
    }
    if (open != '(' && open != '{') return false;
    ++at_;
    code(/*ends_at_line=*/false);
    skip_to(at_ + 1);
    return true;
  }

  // Code, up to what closes it; of a statement to the end of its line, or a semicolon.
  void code(bool ends_at_line) {
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == ')' || c == '}' || c == ']' || (ends_at_line && (c == '\n' || c == ';'))) return;
      if (comment() || group()) continue;
      if (c == '"')
        string();
      else if (c == '`')
        raw();
      else if (c == '$')
        formula();
      else
        ++at_;
    }
  }

  void statement() { code(/*ends_at_line=*/true); }

  // "if a {...} else if b [...] else [...]", and loops.
  void blocks() {
    for (;;) {
      while (at_ < text_.size() && peek() != '{' && peek() != '[' && peek() != '\n') {
        if (peek() == '"')
          string();
        else if (peek() != '(' || !group())
          ++at_;
      }
      if (!group()) return;
      const size_t behind = at_;
      skip_blanks();
      if (!sees("else") || is_name(peek(4))) {
        at_ = behind;
        return;
      }
      at_ += 4;
    }
  }

  const std::string& text_;
  size_t at_ = 0;
  std::vector<TypedNumber> found_;
};

}  // namespace

std::vector<TypedNumber> typed_digits(const std::string& text) { return Reader(text).read(); }

}  // namespace ostro::paper
