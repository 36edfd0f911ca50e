// From a template's text to tokens, with the white space around tags taken away as jinja2 does with
// trim_blocks and lstrip_blocks set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::chat::jinja {

enum class TokenKind {
  kData,           // text outside tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // the data, name or operator; a string's value
  int64_t integer = 0;
  double real = 0;

  bool is(TokenKind k, std::string_view value) const { return kind == k && text == value; }
  bool is_name(std::string_view value) const { return is(TokenKind::kName, value); }
  bool is_operator(std::string_view value) const { return is(TokenKind::kOperator, value); }
};

// Ends with one kEnd. Throws TemplateError; `source` must be valid UTF-8.
std::vector<Token> lex(std::string_view source);

// How errors name a token: "end of template", "'+'" ...
std::string describe(const Token& token);

}  // namespace ostro::chat::jinja
