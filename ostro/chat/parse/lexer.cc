#include "ostro/chat/parse/lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "ostro/chat/value/text.h"
#include "ostro/chat/value/value.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Normalizes line ends to \n, and removes one at the end of the source.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) text_and_tag();
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  // Moves on by n bytes.
  std::string_view take(size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    if (n > 0) line_starting_ = taken.back() == '\n';
    rest_.remove_prefix(n);
    return taken;
  }
  size_t spaces() const { return rest_.size() - strip(rest_, Side::kLeft).size(); }
  bool at(std::string_view text) const { return rest_.starts_with(text); }
  Token& push(TokenKind kind, std::string_view text) {
    return tokens_.emplace_back(Token{.kind = kind, .line = line_, .text = std::string(text)});
  }
  void push_data(std::string_view text, int line) {
    if (text.empty()) return;
    push(TokenKind::kData, text).line = line;
  }

  // Trims the text before a tag with this sign (- or +). `is_variable`: the tag is {{.
  static std::string_view before_tag(std::string_view text, char sign, bool is_variable, bool line_starting) {
    if (sign == '-') return strip(text, Side::kRight);
    if (sign == '+' || is_variable) return text;
    const size_t begin = text.rfind('\n') + 1;  // 0 when there is none
    if (begin == 0 && !line_starting) return text;
    const std::string_view tail = text.substr(begin);
    return strip(tail, Side::kLeft).empty() ? text.substr(0, begin) : text;
  }

  // Length of a tag end such as "raw -%}" at the beginning of `rest`; 0 if there is none. `trims`: a newline
  // after "%}" belongs to it.
  static size_t raw_tag(std::string_view rest, std::string_view name, bool allow_plus, bool trims) {
    const std::string_view whole = rest;
    rest = strip(rest, Side::kLeft);
    if (!rest.starts_with(name)) return 0;
    rest = strip(rest.substr(name.size()), Side::kLeft);
    if (rest.starts_with("-%}")) {
      rest = strip(rest.substr(3), Side::kLeft);
    } else if (allow_plus && rest.starts_with("+%}")) {
      rest.remove_prefix(3);
    } else if (rest.starts_with("%}")) {
      rest.remove_prefix(2);
      if (trims && rest.starts_with('\n')) rest.remove_prefix(1);
    } else {
      return 0;
    }
    return whole.size() - rest.size();
  }

  // Takes the text up to the next {{, {% or {#, and the tag after it. The tag's sign (- or +) decides how
  // the text before it is trimmed. {% raw %} is recognized here, because its content is not tokens.
  void text_and_tag() {
    size_t tag = std::string_view::npos;
    for (size_t i = 0; i + 1 < rest_.size(); ++i)
      if (rest_[i] == '{' && (rest_[i + 1] == '{' || rest_[i + 1] == '%' || rest_[i + 1] == '#')) {
        tag = i;
        break;
      }
    const int line = line_;
    if (tag == std::string_view::npos) {
      push_data(take(rest_.size()), line);
      return;
    }
    const bool line_starting = line_starting_;
    const std::string_view text = take(tag);
    const char kind = rest_[1];
    take(2);
    const char sign = at("-") || at("+") ? rest_[0] : '\0';
    push_data(before_tag(text, sign, kind == '{', line_starting), line);
    if (kind == '%') {
      if (const size_t n = raw_tag(rest_.substr(sign ? 1 : 0), "raw", false, false); n > 0) {
        take(n + (sign ? 1 : 0));
        raw();
        return;
      }
    }
    if (sign) take(1);
    if (kind == '#')
      comment();
    else
      tag_tokens(kind == '%');
  }

  void comment() {
    const int begin = line_;
    const size_t end = rest_.find("#}");
    if (end == std::string_view::npos) throw TemplateError("comment without its end, '#}'", begin);
    const char sign = end > 0 ? rest_[end - 1] : '\0';
    take(end + 2);
    if (sign == '-')
      take(spaces());
    else if (sign != '+' && at("\n"))
      take(1);
  }

  void raw() {
    const int begin = line_;
    const bool line_starting = line_starting_;
    for (size_t i = rest_.find("{%"); i != std::string_view::npos; i = rest_.find("{%", i + 1)) {
      const size_t after = i + 2;
      const char sign =
          after < rest_.size() && (rest_[after] == '-' || rest_[after] == '+') ? rest_[after] : '\0';
      const size_t n = raw_tag(rest_.substr(after + (sign ? 1 : 0)), "endraw", true, true);
      if (n == 0) continue;
      const std::string_view text = take(i);
      push_data(before_tag(text, sign, false, line_starting), begin);
      take(2 + (sign ? 1 : 0) + n);
      return;
    }
    throw TemplateError("raw without its '{% endraw %}'", begin);
  }

  bool tag_end(bool block) {
    if (!open_.empty()) return false;
    const std::string_view end = block ? "%}" : "}}";
    size_t n = 0;
    char sign = '\0';
    if (at(end)) {
      n = 2;
    } else if ((at("-") || (block && at("+"))) && rest_.substr(1).starts_with(end)) {
      n = 3;
      sign = rest_[0];
    } else {
      return false;
    }
    push(block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, end);
    take(n);
    if (sign == '-')
      take(spaces());
    else if (block && sign != '+' && at("\n"))
      take(1);
    return true;
  }

  void tag_tokens(bool block) {
    const int begin = line_;
    push(block ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, block ? "{%" : "{{");
    open_.clear();
    while (!tag_end(block)) {
      if (rest_.empty())
        throw TemplateError(
            fmt::format("'{}' without its end, '{}'", block ? "{%" : "{{", block ? "%}" : "}}"), begin);
      if (const size_t n = spaces(); n > 0)
        take(n);
      else if (is_digit(rest_[0]))
        number();
      else if (rest_[0] == '"' || rest_[0] == '\'')
        string();
      else if (!name())
        op();
    }
  }

  bool name() {
    size_t n = 0;
    while (n < rest_.size()) {
      const tokenizer::CodePoint c = tokenizer::read_code_point(rest_.data() + n);
      if ((tokenizer::code_point_class(c.value) & tokenizer::kWord) == 0) break;
      n += c.length;
    }
    if (n == 0) return false;
    push(TokenKind::kName, rest_.substr(0, n));
    take(n);
    return true;
  }

  // Digits with single underscores between them.
  static size_t digits(std::string_view s) {
    size_t n = 0;
    while (n < s.size() && (is_digit(s[n]) || (s[n] == '_' && n > 0 && s[n - 1] != '_' && n + 1 < s.size() &&
                                               is_digit(s[n + 1]))))
      ++n;
    return n;
  }

  void number() {
    size_t n = digits(rest_);
    bool real = false;
    const bool after_dot = tokens_.back().is_operator(".");  // in items.0.1 there is no fraction
    if (!after_dot && n + 1 < rest_.size() && rest_[n] == '.' && is_digit(rest_[n + 1])) {
      real = true;
      n += 1 + digits(rest_.substr(n + 1));
    }
    if (!after_dot && n < rest_.size() && (rest_[n] | 0x20) == 'e') {
      const size_t sign = n + 1 < rest_.size() && (rest_[n + 1] == '+' || rest_[n + 1] == '-') ? 1 : 0;
      if (const size_t exponent = digits(rest_.substr(n + 1 + sign)); exponent > 0) {
        real = true;
        n += 1 + sign + exponent;
      }
    }
    std::string text(rest_.substr(0, n));
    std::erase(text, '_');
    Token& token = push(real ? TokenKind::kFloat : TokenKind::kInteger, text);
    if (real) {
      token.real = std::strtod(text.c_str(), nullptr);
    } else if (std::from_chars(text.data(), text.data() + text.size(), token.integer).ec != std::errc{}) {
      throw TemplateError(fmt::format("the number {} does not fit 64 bits", text), line_);
    }
    if (!real && text.size() > 1 && text[0] == '0' && token.integer != 0)
      throw TemplateError(fmt::format("the number {} begins with 0", text), line_);
    take(n);
  }

  void string() {
    const char quote = rest_[0];
    const int begin = line_;
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) throw TemplateError("text without its closing quote", begin);
    push(TokenKind::kString, unescaped(rest_.substr(1, end - 1)));
    take(end + 1);
  }

  // Escapes of Python strings. An unknown one is kept unchanged.
  std::string unescaped(std::string_view s) const {
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
      if (s[i] != '\\') {
        out += s[i];
        continue;
      }
      const char c = s[++i];
      static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
      if (const size_t k = kFrom.find(c); k != std::string_view::npos) {
        out += kTo[k];
      } else if (c == '\n') {
        continue;
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_code(s.substr(i + 1, n), n, 16, out);
        i += n;
      } else if (c >= '0' && c <= '7') {
        size_t n = 1;
        while (n < 3 && i + n < s.size() && s[i + n] >= '0' && s[i + n] <= '7') ++n;
        append_code(s.substr(i, n), n, 8, out);
        i += n - 1;
      } else if (c == 'N') {
        throw TemplateError("\\N{...} in a text is not supported; use \\u and four digits", line_);
      } else {
        (out += '\\') += c;
      }
    }
    return out;
  }

  void append_code(std::string_view digits, size_t want, int base, std::string& out) const {
    uint32_t code = 0;
    const char* end = digits.data() + digits.size();
    const auto [ptr, ec] = std::from_chars(digits.data(), end, code, base);
    if (digits.size() != want || ec != std::errc{} || ptr != end || code > 0x10FFFF ||
        (code >= 0xD800 && code < 0xE000))
      throw TemplateError(fmt::format("the escape with the digits \"{}\" is not a character", digits), line_);
    tokenizer::append_utf8(code, out);
  }

  void op() {
    for (const std::string_view o : kOperators) {
      if (!at(o)) continue;
      if (o == "(" || o == "[" || o == "{") {
        open_ += o == "(" ? ')' : o == "[" ? ']' : '}';
      } else if (o == ")" || o == "]" || o == "}") {
        if (open_.empty()) throw TemplateError(fmt::format("unexpected '{}'", o), line_);
        if (open_.back() != o[0])
          throw TemplateError(fmt::format("unexpected '{}', expected '{}'", o, open_.back()), line_);
        open_.pop_back();
      }
      push(TokenKind::kOperator, o);
      take(o.size());
      return;
    }
    const size_t n = tokenizer::read_code_point(rest_.data()).length;
    throw TemplateError(fmt::format("unexpected character '{}' in a tag", rest_.substr(0, n)), line_);
  }

  std::string source_;
  std::string_view rest_;
  int line_ = 1;
  bool line_starting_ = true;  // the last character was a line end
  std::string open_;           // closing brackets that are still missing in the current tag
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd: return "the end of the template";
    case TokenKind::kData: return "text";
    case TokenKind::kString: return "a text";
    default: return "'" + token.text + "'";
  }
}

}  // namespace ostro::chat::jinja
