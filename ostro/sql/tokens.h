// Tokens: the words of an SQL text. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace ostro::sql {

enum class TokenKind { kNumber, kText, kName, kSign };

struct Token {
  TokenKind kind = TokenKind::kSign;
  std::string text;   // as it stands there
  std::string upper;  // of a name without quotes or a sign: in capital letters; else empty
};

bool is_digit(char c);

// The words of a text, without blanks and comments. A text or name that does not end goes to the end.
std::vector<Token> tokens_of(const std::string& sql);

}  // namespace ostro::sql
