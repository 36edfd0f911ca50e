#include "ostro/paper/typed_digits.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ostro::paper {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0; }
bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Functions whose texts are names of files, colours, patterns and so on, and are not shown as they are.
bool takes_names(std::string_view function) {
  return is_one_of(
      function,
      {"num", "fig",  "tab",    "verdict",      "image", "read",  "csv",       "json",  "yaml",  "toml",
       "xml", "cbor", "plugin", "bibliography", "rgb",   "luma",  "cmyk",      "oklab", "oklch", "label",
       "ref", "cite", "link",   "counter",      "state", "regex", "numbering", "raw",   "symbol"});
}

// Arguments that say how something is laid out.
bool is_layout(std::string_view argument) {
  return is_one_of(
      argument,
      {"digits",        "columns",    "rows",    "level",   "depth",  "start",          "colspan",
       "rowspan",       "x",          "y",       "dx",      "dy",     "weight",         "size",
       "width",         "height",     "spacing", "leading", "inset",  "outset",         "gutter",
       "column-gutter", "row-gutter", "stroke",  "radius",  "indent", "hanging-indent", "first-line-indent",
       "angle",         "numbering",  "font",    "fill",    "lang",   "region",         "above",
       "below",         "margin",     "top",     "bottom",  "left",   "right",          "rest",
       "style",         "target"});
}

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

  void number(bool in_code = false) {
    const size_t begin = at_;
    while (is_digit(peek()) || ((peek() == '.' || (peek() == ',' && !in_code)) && is_digit(peek(1)))) ++at_;
    add(begin, at_, in_code);
  }

  void add(size_t begin, size_t end, bool in_code) {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
    found_.push_back({line, text_.substr(begin, end - begin), in_code});
  }

  // The numbers of a text in quotes, which begins here.
  void numbers_of_string(bool in_code) {
    const size_t begin = at_;
    string();
    const size_t end = at_;
    for (at_ = begin; at_ < end;)
      if (is_digit(peek()))
        number(in_code);
      else
        ++at_;
  }

  // A number of code; one with a unit is a length, a share or an angle.
  void literal(bool is_listed) {
    const size_t begin = at_;
    while (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) ++at_;
    if (peek() == 'e' && (is_digit(peek(1)) || (peek(1) == '-' && is_digit(peek(2)))))
      for (at_ += 2; is_digit(peek());) ++at_;
    const size_t end = at_;
    while (is_letter(peek()) || is_digit(peek()) || peek() == '%') ++at_;
    const bool is_hexadecimal = text_[begin] == '0' && is_one_of(text_.substr(end, 1), {"x", "b", "o"});
    if (is_listed && (at_ == end || is_hexadecimal)) add(begin, at_, /*in_code=*/true);
  }

  // The number in front of a heading ("= 2.1 Data", where a point tells it from "= 12 runs", and a large
  // letter from "= 2.5 times") or a list item ("3. "), at the beginning of a line.
  void line_begin() {
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
    if (peek() == '"') return numbers_of_string(/*in_code=*/false);
    expression();
  }

  void expression() {
    if (!is_letter(peek()) && peek() != '_') {
      if (group("")) calls("");
      return;
    }
    const size_t begin = at_;
    while (is_name(peek())) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word == "let" || word == "return") return code(/*ends_at_line=*/true, "");
    if (is_one_of(word, {"set", "show", "import", "include"})) return quietly([&] { code(true, word); });
    if (word == "if" || word == "for" || word == "while") return blocks(/*is_loop=*/word == "for");
    if (word == "context") {
      skip_blanks();
      return expression();
    }
    calls(word);
  }

  // What follows a name or a group: fields, arguments, content.
  void calls(std::string function) {
    for (;;) {
      if (peek() == '.' && (is_letter(peek(1)) || peek(1) == '_')) {
        const size_t begin = ++at_;
        while (is_name(peek())) ++at_;
        function = text_.substr(begin, at_ - begin);
      } else if ((peek() != '(' && peek() != '[') || !group(function)) {
        return;
      }
    }
  }

  // Reads without listing the numbers of code. Text that is shown is listed.
  template <typename Read>
  void quietly(const Read& read) {
    const bool before = is_quiet_;
    is_quiet_ = true;
    read();
    is_quiet_ = before;
  }

  // "(...)", "{...}" or "[...]", as arguments of a function where it has a name; false: none begins here.
  bool group(const std::string& function) {
    const char open = peek();
    if (open == '[') {
      ++at_;
      markup();
      skip_to(at_ + 1);
      return true;
    }
    if (open != '(' && open != '{') return false;
    ++at_;
    code(/*ends_at_line=*/false, function);
    skip_to(at_ + 1);
    return true;
  }

  // Code, up to what closes it; of a statement to the end of its line, or a semicolon. `function`: of whose
  // arguments it is. Numbers and texts in it may be shown by whatever the code does.
  void code(bool ends_at_line, const std::string& function) {
    std::string name, argument;  // the last word, and the argument whose value is read
    while (at_ < text_.size()) {
      const char c = peek();
      const bool is_listed = !is_quiet_ && !is_layout(argument);
      if (c == ')' || c == '}' || c == ']' || (ends_at_line && (c == '\n' || c == ';'))) return;
      if (comment() || group(name)) continue;
      if (is_letter(c) || c == '_') {
        const size_t begin = at_;
        while (is_name(peek())) ++at_;
        name = text_.substr(begin, at_ - begin);
        if (is_one_of(name, {"if", "while"})) quietly([&] { condition(); });
        if (is_one_of(name, {"set", "show", "import", "include"})) quietly([&] { code(true, name); });
        continue;
      }
      if (c == '"' && is_listed && !takes_names(function))
        numbers_of_string(/*in_code=*/true);
      else if (c == '"')
        string();
      else if (c == '`')
        raw();
      else if (c == '$')
        formula();
      else if (is_digit(c))
        literal(is_listed && function != "num");
      else
        ++at_;
      if (c == ':') argument = name;
      if (c == ',' || c == ';' || c == '\n') argument.clear();
      if (c != '.' && !is_blank(c)) name.clear();
    }
  }

  // What stands between "if" and its block.
  void condition() {
    while (at_ < text_.size() && peek() != '{' && peek() != '[' && peek() != '\n' && peek() != ')') {
      if (peek() == '"')
        string();
      else if (peek() != '(' || !group(""))
        ++at_;
    }
  }

  // "if a {...} else if b [...] else [...]", and loops. What a loop runs over may be shown.
  void blocks(bool is_loop) {
    for (;;) {
      if (is_loop)
        condition();
      else
        quietly([&] { condition(); });
      if (!group("")) return;
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
  bool is_quiet_ = false;  // numbers of code are not listed
  std::vector<TypedNumber> found_;
};

}  // namespace

std::vector<TypedNumber> typed_digits(const std::string& text) { return Reader(text).read(); }

}  // namespace ostro::paper
