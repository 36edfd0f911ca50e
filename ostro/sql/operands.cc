#include "ostro/sql/operands.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>

namespace ostro::sql {
namespace {

using Tokens = std::span<const Token>;

bool is_sign(const Token& token, std::string_view sign) {
  return token.kind == TokenKind::kSign && token.text == sign;
}

// The end of the parentheses that begin at `place`, or the beginning of those that end there (`step` -1); the
// number of tokens if they are not closed.
size_t other_end(Tokens all, size_t place, int step) {
  int depth = 0;
  for (size_t i = place; i < all.size(); i += static_cast<size_t>(step)) {  // below 0 it is beyond the end
    depth += is_sign(all[i], "(") ? step : is_sign(all[i], ")") ? -step : 0;
    if (depth == 0) return i;
  }
  return all.size();
}

// A word that stands in front of parentheses and is no function.
bool is_keyword(const Token& token) {
  for (const char* word :
       {"SELECT", "DISTINCT", "ALL",  "WHERE",   "HAVING", "ON",   "BY",   "AND",  "OR",    "NOT",   "IN",
        "IS",     "LIKE",     "GLOB", "BETWEEN", "CASE",   "WHEN", "THEN", "ELSE", "LIMIT", "OFFSET"})
    if (token.upper == word) return true;
  return false;
}

// The operand that ends in front of `end`: a name with its table, a call, or parentheses.
Tokens operand_before(Tokens all, size_t end) {
  size_t begin = end;
  if (begin > 0 && is_sign(all[begin - 1], ")")) {
    begin = other_end(all, begin - 1, -1);
    if (begin == all.size()) return {};
    if (begin == 0 || all[begin - 1].kind != TokenKind::kName || is_keyword(all[begin - 1]))
      return all.subspan(begin, end - begin);
  }
  if (begin == 0 || all[begin - 1].kind != TokenKind::kName) return {};
  --begin;
  if (begin > 1 && is_sign(all[begin - 1], ".") && all[begin - 2].kind == TokenKind::kName) begin -= 2;
  return all.subspan(begin, end - begin);
}

// The operand that begins at `begin`.
Tokens operand_behind(Tokens all, size_t begin) {
  size_t end = begin;
  if (end < all.size() && all[end].kind == TokenKind::kName) {
    ++end;
    if (end + 1 < all.size() && is_sign(all[end], ".") && all[end + 1].kind == TokenKind::kName) end += 2;
  }
  if (end < all.size() && is_sign(all[end], "(")) {
    end = other_end(all, end, 1);
    if (end++ == all.size()) return {};
  }
  return all.subspan(begin, end - begin);
}

// Without parentheses around all of it.
Tokens inner(Tokens operand) {
  while (operand.size() > 2 && is_sign(operand[0], "(") && other_end(operand, 0, 1) == operand.size() - 1)
    operand = operand.subspan(1, operand.size() - 2);
  return operand;
}

std::string text_of(Tokens tokens) {
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool apart = i > 0 && tokens[i].kind != TokenKind::kSign && tokens[i - 1].kind != TokenKind::kSign;
    out += (apart ? " " : "") + tokens[i].text;
  }
  return out;
}

// A name in capital letters, without its quotes: loss, "Loss" and [LOSS] are one column.
std::string plain_name(const Token& name) {
  if (!name.upper.empty() || name.text.size() < 2) return name.upper;
  std::string out = name.text.substr(1, name.text.size() - 2);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

bool is_same(const Token& a, const Token& b) {
  if (a.kind == TokenKind::kName && b.kind == TokenKind::kName) return plain_name(a) == plain_name(b);
  return a.kind == b.kind && a.text == b.text;
}

// Whether two operands are one. Where no SELECT stands in another, a column with its table, and the same name
// without one, are, too.
bool are_same(Tokens a, Tokens b, Tokens all) {
  if (a.empty() || b.empty()) return false;
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same)) return true;
  const auto is_column = [](Tokens t) { return t.size() == 1 || (t.size() == 3 && is_sign(t[1], ".")); };
  const auto selects =
      std::count_if(all.begin(), all.end(), [](const Token& t) { return t.upper == "SELECT"; });
  return selects == 1 && a.size() != b.size() && is_column(a) && is_column(b) &&
         a.back().kind == TokenKind::kName && is_same(a.back(), b.back());
}

enum class Operation { kNone, kProduct, kDifference, kRelation, kEquality };  // the closest first

// The operation whose sign the token is, of those that give one number where both operands are the same.
Operation operation_of(const Token& token) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> signs) {
    return std::any_of(signs.begin(), signs.end(), [&](std::string_view s) { return token.text == s; });
  };
  if (token.upper == "IS") return Operation::kEquality;
  if (token.kind != TokenKind::kSign) return Operation::kNone;
  return is_one_of({"/", "%"})                ? Operation::kProduct
         : is_one_of({"-"})                   ? Operation::kDifference
         : is_one_of({"<", "<=", ">", ">="})  ? Operation::kRelation
         : is_one_of({"=", "==", "<>", "!="}) ? Operation::kEquality
                                              : Operation::kNone;
}

// How closely an operator binds, from 1; 0: it is none that stands between numbers.
int closeness(const Token& token) {
  if (token.kind == TokenKind::kSign) {
    for (const char* sign : {"~", "||", "->", "->>"})
      if (token.text == sign) return 6;
    for (const char* sign : {"*", "/", "%"})
      if (token.text == sign) return 5;
    for (const char* sign : {"+", "-"})
      if (token.text == sign) return 4;
    for (const char* sign : {"&", "|", "<<", ">>"})
      if (token.text == sign) return 3;
  }
  for (const char* word : {"IN", "LIKE", "GLOB", "BETWEEN"})
    if (token.upper == word) return 1;
  const Operation operation = operation_of(token);
  return operation == Operation::kRelation ? 2 : operation == Operation::kEquality ? 1 : 0;
}

// Whether what stands in front of, or behind, an operation between two operands takes one of them away from
// it.
bool is_part_of_other(Operation operation, const Token* before, const Token* behind) {
  const int own = operation == Operation::kProduct      ? 5
                  : operation == Operation::kDifference ? 4
                  : operation == Operation::kRelation   ? 2
                                                        : 1;
  const int in_front = before != nullptr ? closeness(*before) : 0;
  if (behind != nullptr && closeness(*behind) > own) return true;  // loss - loss * b, loss = loss + 1
  if (in_front < own) return false;
  if (in_front > own) return true;  // b * loss - loss, a + loss = loss
  // From left to right: a / loss / loss, a - loss - loss and -loss - loss are other numbers; b * loss / loss
  // is b, and b + loss - loss, too.
  return before->text != "*" && before->text != "+";
}

}  // namespace

std::string same_operands(const std::vector<Token>& tokens, size_t place) {
  const Tokens all(tokens);
  const Operation operation = operation_of(all[place]);
  if (operation == Operation::kNone) return "";
  size_t next = place + 1;
  for (const char* word : {"NOT", "DISTINCT", "FROM"})  // IS NOT, IS NOT DISTINCT FROM
    if (all[place].upper == "IS" && next < all.size() && all[next].upper == word) ++next;
  const Tokens left = operand_before(all, place), right = operand_behind(all, next);
  if (!are_same(inner(left), inner(right), all)) return "";
  const size_t before = place - left.size() - 1, behind = next + right.size();
  if (is_part_of_other(operation, before < all.size() ? &all[before] : nullptr,
                       behind < all.size() ? &all[behind] : nullptr))
    return "";
  return text_of(left) + " " + text_of(all.subspan(place, next - place)) + " " + text_of(right);
}

std::string division_hint(const std::string& query) {
  const std::vector<Token> tokens = tokens_of(query);
  const bool divides = std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return is_sign(token, "/") || is_sign(token, "%");
  });
  return divides ? "; a division by 0 gives NULL: choose rows whose divisor is not 0 (WHERE divisor <> 0)"
                 : "";
}

}  // namespace ostro::sql
