#include "ostro/sql/operands.h"

#include <algorithm>
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

bool is_same(const Token& a, const Token& b) {
  return a.kind == b.kind && (a.upper.empty() && b.upper.empty() ? a.text == b.text : a.upper == b.upper);
}

}  // namespace

std::string same_operands(const std::vector<Token>& tokens, size_t place) {
  const Tokens all(tokens);
  const std::string_view sign = all[place].text;
  if (all[place].kind != TokenKind::kSign || (sign != "/" && sign != "-" && sign != "%")) return "";
  const Tokens left = operand_before(all, place), right = operand_behind(all, place + 1);
  const Tokens a = inner(left), b = inner(right);
  if (a.empty() || !std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same)) return "";
  const auto binds = [&](size_t at) {  // as closely as a product does
    return at < all.size() && (is_sign(all[at], "*") || is_sign(all[at], "/") || is_sign(all[at], "%"));
  };
  const size_t before = place - left.size() - 1, behind = place + 1 + right.size();
  // b * loss - loss, loss - loss * b and a / loss / loss are other numbers; b * loss / loss is b.
  const bool follows_division = before < all.size() && !is_sign(all[before], "*") && binds(before);
  if (sign == "-" ? binds(before) || binds(behind) : follows_division) return "";
  return text_of(left) + " " + std::string(sign) + " " + text_of(right);
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
