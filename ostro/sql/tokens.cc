#include "ostro/sql/tokens.h"

#include <algorithm>

namespace ostro::sql {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

namespace {

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_of_name(char c) { return begins_name(c) || is_digit(c) || c == '$'; }

class TokenReader {
 public:
  explicit TokenReader(const std::string& sql) : sql_(sql) {}

  std::vector<Token> read() {
    while (at_ < sql_.size()) {
      const char c = peek();
      const size_t begin = at_;
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == '-' && peek(1) == '-') {
        at_ = std::min(sql_.find('\n', at_), sql_.size());
      } else if (c == '/' && peek(1) == '*') {
        const size_t end = sql_.find("*/", at_ + 2);
        at_ = end == std::string::npos ? sql_.size() : end + 2;
      } else if (c == '\'') {
        quoted('\'');
        add(TokenKind::kText, begin);
      } else if ((c == 'x' || c == 'X') && peek(1) == '\'') {
        ++at_;
        quoted('\'');
        add(TokenKind::kText, begin);
      } else if (c == '"' || c == '`' || c == '[') {
        quoted(c == '[' ? ']' : c);
        add(TokenKind::kName, begin);
      } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
        number();
        add(TokenKind::kNumber, begin);
      } else if (begins_name(c)) {
        while (is_of_name(peek())) ++at_;
        add(TokenKind::kName, begin, /*is_plain=*/true);
      } else {
        sign();
        add(TokenKind::kSign, begin, /*is_plain=*/true);
      }
    }
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0'; }

  void add(TokenKind kind, size_t begin, bool is_plain = false) {
    Token token{kind, sql_.substr(begin, at_ - begin), ""};
    if (is_plain)
      for (const char c : token.text) token.upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    out_.push_back(std::move(token));
  }

  // Up to the quote that ends it; two of them are one that belongs to it.
  void quoted(char end) {
    for (++at_; at_ < sql_.size(); ++at_) {
      if (peek() != end) continue;
      if (peek(1) != end || end == ']') break;
      ++at_;
    }
    at_ = std::min(at_ + 1, sql_.size());
  }

  void number() {
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      while (is_of_name(peek())) ++at_;
      return;
    }
    while (is_digit(peek()) || peek() == '.' || peek() == '_') ++at_;
    if (peek() == 'e' || peek() == 'E') {
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit(peek(1 + sign)))
        for (at_ += 1 + sign; is_digit(peek());) ++at_;
    }
  }

  void sign() {
    const std::string two = sql_.substr(at_, 2);
    for (const char* known : {"<=", ">=", "<>", "!=", "==", "||", "<<", ">>", "->"})
      if (two == known) {
        at_ += 2;
        return;
      }
    ++at_;
  }

  const std::string& sql_;
  size_t at_ = 0;
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokens_of(const std::string& sql) { return TokenReader(sql).read(); }

}  // namespace ostro::sql
