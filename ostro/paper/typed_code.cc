// The code of a Typst document, as TypedDigitReader reads it.
#include <string>
#include <string_view>

#include "ostro/paper/typed_digit_reader.h"

namespace ostro::paper {
namespace {

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

}  // namespace

void TypedDigitReader::expression() {
  if (!is_letter(peek()) && peek() != '_') {
    if (group("")) calls("");
    return;
  }
  const size_t begin = at_;
  while (is_of_name(peek())) ++at_;
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

void TypedDigitReader::calls(std::string function) {
  for (;;) {
    if (peek() == '.' && (is_letter(peek(1)) || peek(1) == '_')) {
      const size_t begin = ++at_;
      while (is_of_name(peek())) ++at_;
      function = text_.substr(begin, at_ - begin);
    } else if ((peek() != '(' && peek() != '[') || !group(function)) {
      return;
    }
  }
}

bool TypedDigitReader::group(const std::string& function) {
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

void TypedDigitReader::code(bool ends_at_line, const std::string& function) {
  std::string name, argument;  // the last word, and the argument whose value is read
  while (at_ < text_.size()) {
    const char c = peek();
    const bool is_listed = !is_quiet_ && !is_layout(argument);
    if (c == ')' || c == '}' || c == ']' || (ends_at_line && (c == '\n' || c == ';'))) return;
    if (comment() || group(name)) continue;
    if (is_letter(c) || c == '_') {
      const size_t begin = at_;
      while (is_of_name(peek())) ++at_;
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

void TypedDigitReader::literal(bool is_listed) {
  const size_t begin = at_;
  while (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) ++at_;
  if (peek() == 'e' && (is_digit(peek(1)) || (peek(1) == '-' && is_digit(peek(2)))))
    for (at_ += 2; is_digit(peek());) ++at_;
  const size_t end = at_;
  while (is_letter(peek()) || is_digit(peek()) || peek() == '%') ++at_;
  const bool is_hexadecimal = text_[begin] == '0' && is_one_of(text_.substr(end, 1), {"x", "b", "o"});
  if (is_listed && (at_ == end || is_hexadecimal)) add(begin, at_, /*in_code=*/true);
}

void TypedDigitReader::condition() {
  while (at_ < text_.size() && peek() != '{' && peek() != '[' && peek() != '\n' && peek() != ')') {
    if (peek() == '"')
      string();
    else if (peek() != '(' || !group(""))
      ++at_;
  }
}

void TypedDigitReader::blocks(bool is_loop) {
  for (;;) {
    if (is_loop)
      condition();
    else
      quietly([&] { condition(); });
    if (!group("")) return;
    const size_t behind = at_;
    skip_blanks();
    if (!sees("else") || is_of_name(peek(4))) {
      at_ = behind;
      return;
    }
    at_ += 4;
  }
}

}  // namespace ostro::paper
