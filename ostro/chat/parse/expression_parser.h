// ExpressionParser: parses the expressions inside {{ }} and in tags. Statements are parsed in parser.cc.
// Errors are thrown as TemplateError with the line of the current token. Not thread-safe.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/chat/parse/ast.h"
#include "ostro/chat/parse/lexer.h"

namespace ostro::chat::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& after_current() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void advance() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  // The skip functions move past the current token and return true if it is the one given; the expect
  // functions fail if it is not.
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view op);
  void expect_name(std::string_view name);
  void expect_operator(std::string_view op);
  void expect(TokenKind kind, std::string_view what);
  std::string take_name();
  // The index of the current token.
  size_t position() const { return at_; }
  // True if one of the tokens from `first` up to the current one is this name.
  bool names_since(size_t first, std::string_view name) const;
  [[noreturn]] void fail(const std::string& message) const;

  // Parses one expression. Without `conditional`, an `if` after it is not part of it.
  ExprPtr expression(bool conditional = true);
  // Parses one expression, or several separated by commas, which form a tuple. Stops before the name `end`.
  ExprPtr tuple(bool conditional = true, std::string_view end = {});
  // Parses filters. With `first_without_pipe` the first one has no "|" before it. `input` may be null (filter
  // blocks).
  ExprPtr filters(ExprPtr input, bool first_without_pipe);
  // (a, b=c, *d, **e) of a call, filter or test.
  ArgumentList arguments();
  // A constant, a name, or an expression in brackets; and `inner` with the .name, [key] and calls after it.
  ExprPtr primary();
  ExprPtr postfix(ExprPtr inner);

  // Increases the nesting depth while it lives. Fails at a depth that no real template reaches.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.depth_; }

   private:
    ExpressionParser& parser_;
  };

 private:
  using Rule = ExprPtr (ExpressionParser::*)();
  ExprPtr make(ExprKind kind, int line) const;
  void add_child(Expr& parent, ExprPtr child) const;
  void set_arguments(Expr& parent, ArgumentList arguments) const;
  void note_depth(Expr& parent, const ExprPtr& child) const;
  ExprPtr binary(Rule inner, std::initializer_list<std::string_view> operators);
  ExprPtr joined(Rule inner, ExprKind kind, std::string_view word);
  ExprPtr either();
  ExprPtr both();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary() { return unary_with(true); }
  ExprPtr unary_with(bool filtered);
  ExprPtr list_of(ExprKind kind, std::string_view close);
  ExprPtr dict();
  ExprPtr subscript(ExprPtr inner);
  ExprPtr subscript_part();
  ExprPtr call(ExprPtr callee);
  ExprPtr test(ExprPtr inner);
  bool tuple_ends(std::string_view end) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace ostro::chat::jinja
