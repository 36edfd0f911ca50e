#include "ostro/eval/tasks/match.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/chat/value/text.h"

namespace ostro::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_punctuation(char c) { return c > ' ' && c < '\x7f' && !is_digit(c) && !is_letter(c); }

// Breadth first: time and memory are linear in the text for any pattern, without deep recursion.
Result<std::regex> compile_regex(const std::string& pattern, const std::string& key) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error& e) {
    return config::option_error(
        key,
        fmt::format(
            "\"{}\" is not a regular expression that can be used (ECMAScript without back references): {}",
            pattern, e.what()));
  }
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
  const bool negative = begin > 0 && text[begin - 1] == '-' &&
                        (begin == 1 || !(is_digit(text[begin - 2]) || is_letter(text[begin - 2])));
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
    ASSIGN_OR_RETURN(std::regex ignored, compile_regex(pattern, fmt::format("{}.regexes_to_ignore[{}]", key,
                                                                            out.ignored_.size())));
    out.ignored_.push_back(std::move(ignored));
  }
  return out;
}

std::string Matcher::extract(const std::string& text) const {
  const auto stripped = [](const std::string& s) {
    return std::string(chat::jinja::strip(s, chat::jinja::Side::kBoth));
  };
  if (!pattern_) return stripped(text);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), *pattern_); it != std::sregex_iterator();
       ++it) {
    size_t group = 0;
    for (size_t i = 1; i < it->size() && group == 0; ++i)
      if ((*it)[i].matched) group = i;
    found.push_back((*it)[group].str());
  }
  const auto count = static_cast<int64_t>(found.size());
  const int64_t wanted = options_.regex.group < 0 ? count + options_.regex.group : options_.regex.group;
  if (wanted < 0 || wanted >= count) return options_.regex.fallback;
  return stripped(found[static_cast<size_t>(wanted)]);
}

std::string Matcher::normalize(std::string text) const {
  for (const std::regex& ignored : ignored_) text = std::regex_replace(text, ignored, "");
  if (options_.ignore_case)
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (options_.ignore_punctuation) std::erase_if(text, is_punctuation);
  return std::string(chat::jinja::strip(text, chat::jinja::Side::kBoth));
}

bool Matcher::exact(const std::string& extracted, const std::vector<std::string>& answers) const {
  const std::string text = normalize(extracted);
  return std::any_of(answers.begin(), answers.end(),
                     [&](const std::string& a) { return normalize(a) == text; });
}

bool Matcher::numeric(const std::string& extracted, const std::vector<std::string>& answers) const {
  const auto number = last_number(extracted);
  return number && std::any_of(answers.begin(), answers.end(),
                               [&](const std::string& a) { return last_number(a) == number; });
}

}  // namespace ostro::eval
