#include "ostro/eval/tasks/match.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/chat/value/text.h"

namespace ostro::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_punctuation(char c) { return c > ' ' && c < '\x7f' && !is_digit(c) && !is_letter(c); }

Result<Pattern> compile_regex(const std::string& pattern, const std::string& key) {
  auto compiled = Pattern::compile(pattern);
  if (compiled.ok()) return compiled;
  return config::option_error(key, fmt::format("\"{}\" is not a regular expression that can be used: {}",
                                               pattern, compiled.error().message()));
}

// The bytes of a minus sign that ends at `end`: the ASCII one, or one of those that are written in formulas.
size_t minus_before(std::string_view text, size_t end) {
  for (const std::string_view sign : {"-", "\u2212", "\uFE63", "\uFF0D"})
    if (text.substr(0, end).ends_with(sign)) return sign.size();
  return 0;
}

}  // namespace

// Looks for the last digit, and from there leftwards for more digits, one point, and commas that three digits
// follow. A minus sign counts only when it does not follow a letter or digit. Leading zeros, and trailing
// ones after the point, are removed.
std::optional<std::string> last_number(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  if (end == 0) return std::nullopt;
  size_t begin = end;
  bool point = false;
  while (begin > 0) {
    const char c = text[begin - 1];
    const bool after_digit = begin > 1 && is_digit(text[begin - 2]);
    if (is_digit(c)) {
      --begin;
    } else if (c == '.' && !point && text.substr(begin, end - begin).find(',') == std::string_view::npos) {
      point = true;  // ".5" is a number, too
      --begin;
      if (!after_digit) break;
    } else if (c == ',' && after_digit && text.substr(begin).size() >= 3 && is_digit(text[begin + 1]) &&
               is_digit(text[begin + 2])) {
      --begin;  // 1,234
    } else {
      break;
    }
  }
  const size_t sign = minus_before(text, begin);
  const bool negative =
      sign > 0 && (begin == sign || !(is_digit(text[begin - sign - 1]) || is_letter(text[begin - sign - 1])));
  std::string digits;
  for (const char c : text.substr(begin, end - begin))
    if (c != ',') digits += c;
  const size_t at = digits.find('.');
  std::string whole = digits.substr(0, at), part = at == std::string::npos ? "" : digits.substr(at + 1);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  part.erase(part.find_last_not_of('0') + 1);
  if (whole.empty()) whole = "0";
  const std::string number = part.empty() ? whole : whole + "." + part;
  return negative && number != "0" ? "-" + number : number;
}

Result<Matcher> Matcher::create(const std::string& key, const GenerateOptions& options) {
  Matcher out;
  out.options_ = options;
  if (!options.regex.pattern.empty()) {
    ASSIGN_OR_RETURN(out.pattern_, compile_regex(options.regex.pattern, key + ".regex.pattern"));
  }
  for (const std::string& pattern : options.regexes_to_ignore) {
    ASSIGN_OR_RETURN(Pattern ignored, compile_regex(pattern, fmt::format("{}.regexes_to_ignore[{}]", key,
                                                                         out.ignored_.size())));
    out.ignored_.push_back(std::move(ignored));
  }
  return out;
}

// As lm-evaluation-harness takes it: of a pattern with one group the group, of one with several the first
// that is not empty.
Result<std::string> Matcher::extract(const std::string& text) const {
  const auto stripped = [](std::string_view s) {
    return std::string(chat::jinja::strip(s, chat::jinja::Side::kBoth));
  };
  if (!pattern_) return stripped(text);
  ASSIGN_OR_RETURN(const std::vector<Pattern::Match> found, pattern_->find_all(text));
  const auto count = static_cast<int64_t>(found.size());
  const int64_t wanted = options_.regex.group < 0 ? count + options_.regex.group : options_.regex.group;
  if (wanted < 0 || wanted >= count) return options_.regex.fallback;
  const Pattern::Match& match = found[static_cast<size_t>(wanted)];
  if (match.size() <= 2) return stripped(match.back().value_or(""));
  for (size_t g = 1; g < match.size(); ++g)
    if (!match[g].value_or("").empty()) return stripped(*match[g]);
  return options_.regex.fallback;
}

Result<std::string> Matcher::normalize(std::string text) const {
  for (const Pattern& ignored : ignored_) {
    ASSIGN_OR_RETURN(text, ignored.remove_from(text));
  }
  if (options_.ignore_case) text = chat::jinja::lower(text);
  if (options_.ignore_punctuation) std::erase_if(text, is_punctuation);
  return std::string(chat::jinja::strip(text, chat::jinja::Side::kBoth));
}

Result<bool> Matcher::exact(const std::string& extracted, const std::vector<std::string>& answers) const {
  ASSIGN_OR_RETURN(const std::string text, normalize(extracted));
  for (const std::string& answer : answers) {
    ASSIGN_OR_RETURN(const std::string right, normalize(answer));
    if (right == text) return true;
  }
  return false;
}

bool Matcher::numeric(const std::string& extracted, const std::vector<std::string>& answers) const {
  const auto number = last_number(extracted);
  return number && std::any_of(answers.begin(), answers.end(),
                               [&](const std::string& a) { return last_number(a) == number; });
}

}  // namespace ostro::eval
