#include "ostro/experiment/plan/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "ostro/config/codec.h"
#include "ostro/config/options.h"

namespace ostro::lab {
namespace {

bool is_sign(const std::string& word) { return word == "<" || word == "<=" || word == ">" || word == ">="; }

bool is_rule_name(const std::string& word) {
  return std::find(rule_names().begin(), rule_names().end(), word) != rule_names().end();
}

// A finite number as a configuration reads it.
std::optional<double> rule_number(const std::string& word) {
  const config::Node node = config::plain_scalar(word, "");
  double out = 0;
  if ((node.kind != config::Node::Kind::kInt && node.kind != config::Node::Kind::kDouble) ||
      !config::read_value(node, "", &out).ok() || !std::isfinite(out))
    return std::nullopt;
  return out;
}

// Signs are words of their own, also without spaces around them.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  bool goes_on = false;
  for (const char c : text) {
    const bool sign = c == '<' || c == '>' || c == '=';
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      goes_on = false;
      continue;
    }
    const bool last_is_sign = goes_on && std::string("<>=").find(out.back().back()) != std::string::npos;
    if (!goes_on || sign != last_is_sign) out.emplace_back();
    out.back() += c;
    goes_on = true;
  }
  return out;
}

Status check_operand(const std::string& word) {
  if (is_rule_name(word) || rule_number(word)) return {};
  const bool like_a_name = std::isalpha(static_cast<unsigned char>(word[0])) != 0;
  return invalid_argument(fmt::format(
      "\"{}\" is no number and none of the names of a rule{}", word,
      like_a_name ? fmt::format("; the nearest is \"{}\"", config::nearest_name(word, rule_names())) : ""));
}

}  // namespace

const std::vector<std::string>& rule_names() {
  static const std::vector<std::string> kNames = {"n",     "mean",   "min", "max",
                                                  "low95", "high95", "low", "high"};
  return kNames;
}

Result<Rule> Rule::parse(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  Rule out;
  for (size_t i = 0; i < words.size() || i == 0; i += 4) {
    if (i + 3 > words.size())
      return invalid_argument(fmt::format(
          "\"{}\": expected comparisons joined by \"and\", for example \"low95 > 0 and n >= 3\"", text));
    const Comparison c = {words[i], words[i + 1], words[i + 2]};
    RETURN_IF_ERROR(check_operand(c.left));
    RETURN_IF_ERROR(check_operand(c.right));
    if (!is_sign(c.sign))
      return invalid_argument(fmt::format("\"{}\" is no comparison; use <, <=, > or >=", c.sign));
    if (!is_rule_name(c.left) && !is_rule_name(c.right))
      return invalid_argument(
          fmt::format("\"{} {} {}\" compares two numbers; use a name", c.left, c.sign, c.right));
    if (i + 3 < words.size() && (words[i + 3] != "and" || i + 4 == words.size()))
      return invalid_argument(
          fmt::format("\"{}\": \"{}\" does not join two comparisons; use \"and\"", text, words[i + 3]));
    out.comparisons_.push_back(c);
  }
  return out;
}

bool Rule::holds(const std::map<std::string, double>& values) const {
  const auto value_of = [&](const std::string& word) -> std::optional<double> {
    if (!is_rule_name(word)) return rule_number(word);
    const auto found = values.find(word);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  return std::all_of(comparisons_.begin(), comparisons_.end(), [&](const Comparison& c) {
    const auto left = value_of(c.left), right = value_of(c.right);
    if (!left || !right) return false;
    return c.sign == "<"    ? *left < *right
           : c.sign == "<=" ? *left <= *right
           : c.sign == ">"  ? *left > *right
                            : *left >= *right;
  });
}

std::string Rule::text() const {
  std::string out;
  for (const Comparison& c : comparisons_)
    out += fmt::format("{}{} {} {}", out.empty() ? "" : " and ", c.left, c.sign, c.right);
  return out;
}

bool Rule::uses(const std::string& name) const {
  return std::any_of(comparisons_.begin(), comparisons_.end(),
                     [&](const Comparison& c) { return c.left == name || c.right == name; });
}

}  // namespace ostro::lab
