// lex: splits the source of a template into tokens. White space around tags is removed as jinja2 does with
// trim_blocks and lstrip_blocks.
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
  std::string text;  // the data, name or operator, or the value of a string
  int64_t integer = 0;
  double real = 0;

  bool is(TokenKind k, std::string_view value) const { return kind == k && text == value; }
  bool is_name(std::string_view value) const { return is(TokenKind::kName, value); }
  bool is_operator(std::string_view value) const { return is(TokenKind::kOperator, value); }
};

// The tokens, with one kEnd as the last. Throws TemplateError. `source` must be valid UTF-8.
std::vector<Token> lex(std::string_view source);

// The name of a token in errors: "end of template", "'+'" ...
std::string describe(const Token& token);

}  // namespace ostro::chat::jinja
