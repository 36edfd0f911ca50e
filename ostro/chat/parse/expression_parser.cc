#include "ostro/chat/parse/expression_parser.h"

#include <fmt/core.h>

#include <algorithm>

namespace ostro::chat::jinja {
namespace {
constexpr int kMaxNesting = 200;
constexpr int kMaxTreeDepth = 500;  // of the tree
}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxNesting)
    throw TemplateError(fmt::format("nested more than {} deep", kMaxNesting), parser_.current().line);
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  advance();
  return true;
}

bool ExpressionParser::skip_operator(std::string_view op) {
  if (!current().is_operator(op)) return false;
  advance();
  return true;
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail(fmt::format("expected '{}', found {}", name, describe(current())));
}

void ExpressionParser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail(fmt::format("expected '{}', found {}", op, describe(current())));
}

void ExpressionParser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) fail(fmt::format("expected {}, found {}", what, describe(current())));
  advance();
}

std::string ExpressionParser::take_name() {
  if (current().kind != TokenKind::kName) fail(fmt::format("expected a name, found {}", describe(current())));
  std::string name = current().text;
  advance();
  return name;
}

bool ExpressionParser::names_since(size_t first, std::string_view name) const {
  for (size_t i = first; i < at_; ++i)
    if (tokens_[i].is_name(name)) return true;
  return false;
}

void ExpressionParser::fail(const std::string& message) const {
  throw TemplateError(message, current().line);
}

// Chains (a + b + c ...) make the tree deeper without recursion in the parser, so the depth of the tree is
// counted.
void ExpressionParser::add_child(Expr& parent, ExprPtr child) const {
  note_depth(parent, child);
  parent.children.push_back(std::move(child));
}

void ExpressionParser::note_depth(Expr& parent, const ExprPtr& child) const {
  if (!child) return;
  parent.depth = std::max(parent.depth, child->depth + 1);
  if (parent.depth > kMaxTreeDepth)
    throw TemplateError(fmt::format("an expression of more than {} levels", kMaxTreeDepth), parent.line);
}

void ExpressionParser::set_arguments(Expr& parent, ArgumentList arguments) const {
  for (const ExprPtr& e : arguments.positional) note_depth(parent, e);
  for (const auto& [name, e] : arguments.named) note_depth(parent, e);
  note_depth(parent, arguments.more_positional);
  note_depth(parent, arguments.more_named);
  parent.arguments = std::move(arguments);
}

ExprPtr ExpressionParser::make(ExprKind kind, int line) const {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->line = line;
  return e;
}

// The chain of precedence, from the loosest: if-else, or, and, not, comparison, sum, ~, product, **, unary
// with filters and tests. Each function parses one level and calls the next.
ExprPtr ExpressionParser::expression(bool conditional) {
  const Nesting nesting(*this);
  ExprPtr left = either();
  while (conditional && current().is_name("if")) {
    ExprPtr e = make(ExprKind::kConditional, current().line);
    advance();
    add_child(*e, either());
    add_child(*e, std::move(left));
    add_child(*e, skip_name("else") ? expression() : nullptr);
    left = std::move(e);
  }
  return left;
}

ExprPtr ExpressionParser::joined(Rule inner, ExprKind kind, std::string_view word) {
  ExprPtr left = (this->*inner)();
  while (current().is_name(word)) {
    ExprPtr e = make(kind, current().line);
    advance();
    add_child(*e, std::move(left));
    add_child(*e, (this->*inner)());
    left = std::move(e);
  }
  return left;
}

ExprPtr ExpressionParser::either() { return joined(&ExpressionParser::both, ExprKind::kOr, "or"); }
ExprPtr ExpressionParser::both() { return joined(&ExpressionParser::negation, ExprKind::kAnd, "and"); }

ExprPtr ExpressionParser::negation() {
  if (!current().is_name("not")) return comparison();
  const Nesting nesting(*this);
  ExprPtr e = make(ExprKind::kNot, current().line);
  advance();
  add_child(*e, negation());
  return e;
}

ExprPtr ExpressionParser::comparison() {
  const int line = current().line;
  ExprPtr first = sum();
  ExprPtr e;
  while (true) {
    std::string op;
    for (const char* o : {"==", "!=", "<", "<=", ">", ">="})
      if (current().is_operator(o)) op = o;
    if (current().is_name("in")) op = "in";
    if (current().is_name("not") && after_current().is_name("in")) {
      op = "not in";
      advance();
    }
    if (op.empty()) return e ? std::move(e) : std::move(first);
    advance();
    if (!e) {
      e = make(ExprKind::kCompare, line);
      add_child(*e, std::move(first));
    }
    e->operators.push_back(std::move(op));
    add_child(*e, sum());
  }
}

ExprPtr ExpressionParser::binary(Rule inner, std::initializer_list<std::string_view> operators) {
  ExprPtr left = (this->*inner)();
  while (true) {
    const auto op = std::find_if(operators.begin(), operators.end(),
                                 [this](std::string_view o) { return current().is_operator(o); });
    if (op == operators.end()) return left;
    ExprPtr e = make(ExprKind::kBinary, current().line);
    e->name = *op;
    advance();
    add_child(*e, std::move(left));
    add_child(*e, (this->*inner)());
    left = std::move(e);
  }
}

ExprPtr ExpressionParser::sum() { return binary(&ExpressionParser::concatenation, {"+", "-"}); }

ExprPtr ExpressionParser::concatenation() {
  ExprPtr first = product();
  if (!current().is_operator("~")) return first;
  ExprPtr e = make(ExprKind::kConcat, current().line);
  add_child(*e, std::move(first));
  while (skip_operator("~")) add_child(*e, product());
  return e;
}

ExprPtr ExpressionParser::product() { return binary(&ExpressionParser::power, {"*", "/", "//", "%"}); }
ExprPtr ExpressionParser::power() { return binary(&ExpressionParser::unary, {"**"}); }

ExprPtr ExpressionParser::unary_with(bool filtered) {
  const Nesting nesting(*this);
  ExprPtr e;
  if (current().is_operator("-") || current().is_operator("+")) {
    e = make(current().is_operator("-") ? ExprKind::kNegative : ExprKind::kPositive, current().line);
    advance();
    add_child(*e, unary_with(false));
  } else {
    e = primary();
  }
  e = postfix(std::move(e));
  while (filtered) {
    if (current().is_operator("|"))
      e = filters(std::move(e), false);
    else if (current().is_name("is"))
      e = test(std::move(e));
    else if (current().is_operator("("))
      e = call(std::move(e));
    else
      break;
  }
  return e;
}

ExprPtr ExpressionParser::primary() {
  const int line = current().line;
  const Token& token = current();
  if (token.kind == TokenKind::kName) {
    const bool yes = token.text == "true" || token.text == "True";
    const bool no = token.text == "false" || token.text == "False";
    const bool none = token.text == "none" || token.text == "None";
    ExprPtr e = make(yes || no || none ? ExprKind::kConst : ExprKind::kName, line);
    if (yes || no) e->value = Value(yes);
    if (e->kind == ExprKind::kName) e->name = token.text;
    advance();
    return e;
  }
  if (token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
      token.kind == TokenKind::kFloat) {
    ExprPtr e = make(ExprKind::kConst, line);
    if (token.kind == TokenKind::kInteger) {
      e->value = Value(token.integer);
      advance();
    } else if (token.kind == TokenKind::kFloat) {
      e->value = Value(token.real);
      advance();
    } else {
      std::string text;  // adjacent strings are one string
      for (; current().kind == TokenKind::kString; advance()) text += current().text;
      e->value = Value(std::move(text));
    }
    return e;
  }
  if (skip_operator("(")) {
    ExprPtr e;
    if (current().is_operator(")"))
      e = make(ExprKind::kTuple, line);
    else
      e = tuple();
    expect_operator(")");
    return e;
  }
  if (token.is_operator("[")) {
    advance();
    return list_of(ExprKind::kList, "]");
  }
  if (token.is_operator("{")) {
    advance();
    return dict();
  }
  fail(fmt::format("expected an expression, found {}", describe(token)));
}

bool ExpressionParser::tuple_ends(std::string_view end) const {
  const TokenKind kind = current().kind;
  return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || current().is_operator(")") ||
         (!end.empty() && current().is_name(end));
}

ExprPtr ExpressionParser::tuple(bool conditional, std::string_view end) {
  const int line = current().line;
  ExprPtr first = expression(conditional);
  if (!current().is_operator(",")) return first;
  ExprPtr e = make(ExprKind::kTuple, line);
  add_child(*e, std::move(first));
  while (skip_operator(",")) {
    if (tuple_ends(end)) break;
    add_child(*e, expression(conditional));
  }
  return e;
}

ExprPtr ExpressionParser::list_of(ExprKind kind, std::string_view close) {
  ExprPtr e = make(kind, current().line);
  while (!current().is_operator(close)) {
    add_child(*e, expression());
    if (!skip_operator(",")) break;
  }
  expect_operator(close);
  return e;
}

ExprPtr ExpressionParser::dict() {
  ExprPtr e = make(ExprKind::kDict, current().line);
  while (!current().is_operator("}")) {
    add_child(*e, expression());
    expect_operator(":");
    add_child(*e, expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("}");
  return e;
}

ExprPtr ExpressionParser::postfix(ExprPtr inner) {
  while (true) {
    if (current().is_operator(".") || current().is_operator("["))
      inner = subscript(std::move(inner));
    else if (current().is_operator("("))
      inner = call(std::move(inner));
    else
      return inner;
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr inner) {
  const int line = current().line;
  if (skip_operator(".")) {
    if (current().kind == TokenKind::kInteger) {
      ExprPtr e = make(ExprKind::kItem, line);
      ExprPtr index = make(ExprKind::kConst, line);
      index->value = Value(current().integer);
      advance();
      add_child(*e, std::move(inner));
      add_child(*e, std::move(index));
      return e;
    }
    ExprPtr e = make(ExprKind::kAttribute, line);
    e->name = take_name();
    add_child(*e, std::move(inner));
    return e;
  }
  expect_operator("[");
  ExprPtr e = make(ExprKind::kItem, line);
  add_child(*e, std::move(inner));
  add_child(*e, subscript_part());
  expect_operator("]");
  return e;
}

ExprPtr ExpressionParser::subscript_part() {
  const int line = current().line;
  ExprPtr first;
  if (!current().is_operator(":")) {
    first = expression();
    if (!current().is_operator(":")) return first;
  }
  ExprPtr e = make(ExprKind::kSlice, line);
  add_child(*e, std::move(first));
  for (int part = 1; part < 3; ++part) {
    const bool there = skip_operator(":") && !current().is_operator(":") && !current().is_operator("]");
    add_child(*e, there ? expression() : nullptr);
  }
  return e;
}

ArgumentList ExpressionParser::arguments() {
  ArgumentList out;
  expect_operator("(");
  while (!current().is_operator(")")) {
    if (skip_operator("**")) {
      if (out.more_named) fail("a second ** in one call");
      out.more_named = expression();
    } else if (skip_operator("*")) {
      if (out.more_positional) fail("a second * in one call");
      out.more_positional = expression();
    } else if (current().kind == TokenKind::kName && after_current().is_operator("=")) {
      std::string name = take_name();
      advance();
      out.named.emplace_back(std::move(name), expression());
    } else {
      if (!out.named.empty() || out.more_positional || out.more_named)
        fail("an argument without a name after one with a name");
      out.positional.push_back(expression());
    }
    if (!skip_operator(",")) break;
  }
  expect_operator(")");
  return out;
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  ExprPtr e = make(ExprKind::kCall, current().line);
  add_child(*e, std::move(callee));
  set_arguments(*e, arguments());
  return e;
}

ExprPtr ExpressionParser::filters(ExprPtr input, bool first_without_pipe) {
  while (first_without_pipe || skip_operator("|")) {
    first_without_pipe = false;
    ExprPtr e = make(ExprKind::kFilter, current().line);
    e->name = take_name();
    add_child(*e, std::move(input));
    if (current().is_operator("(")) set_arguments(*e, arguments());
    input = std::move(e);
  }
  return input;
}

ExprPtr ExpressionParser::test(ExprPtr inner) {
  const int line = current().line;
  advance();  // is
  const bool negated = skip_name("not");
  ExprPtr e = make(ExprKind::kTest, line);
  e->name = take_name();
  add_child(*e, std::move(inner));
  const Token& next = current();
  if (next.is_operator("(")) {
    set_arguments(*e, arguments());
  } else if (next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
             next.kind == TokenKind::kFloat || next.is_operator("[") || next.is_operator("{") ||
             (next.kind == TokenKind::kName && !next.is_name("else") && !next.is_name("or") &&
              !next.is_name("and"))) {
    if (next.is_name("is")) fail("a test behind a test: write `and` between them");
    ArgumentList argument;
    argument.positional.push_back(postfix(primary()));
    set_arguments(*e, std::move(argument));
  }
  if (!negated) return e;
  ExprPtr out = make(ExprKind::kNot, line);
  add_child(*out, std::move(e));
  return out;
}

}  // namespace ostro::chat::jinja
