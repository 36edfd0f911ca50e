#include "ostro/tokenizer/split/simple_pattern.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "ostro/tokenizer/split/json_fields.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
constexpr size_t kMostRepeats = 64;  // keeps the search linear
constexpr std::string_view kSpecial = ".^$*+?()[]{}|\\";

// Reads one character or class from the front of a regular expression. False if there is neither.
bool take_atom(std::string_view& regex, uint8_t& classes, uint32_t& character) {
  for (const auto& [name, bits] :
       {std::pair{std::string_view("\\s"), kSpace}, {"\\p{L}", kLetter}, {"\\p{N}", kNumber}}) {
    if (!regex.starts_with(name)) continue;
    classes = bits;
    regex.remove_prefix(name.size());
    return true;
  }
  const bool escaped = regex.size() > 1 && regex[0] == '\\';
  if (escaped) regex.remove_prefix(1);
  const bool ascii_word =
      (regex[0] >= '0' && regex[0] <= '9') || ((regex[0] | 32) >= 'a' && (regex[0] | 32) <= 'z');
  if (escaped ? ascii_word : kSpecial.find(regex[0]) != std::string_view::npos) return false;
  const CodePoint c = read_code_point(regex.data());
  character = c.value;
  regex.remove_prefix(c.length);
  return true;
}

bool take_number(std::string_view& text, size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > kMostRepeats) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Reads "", "+", "{n}", "{n,}" or "{n,m}", which must be the whole rest.
bool take_repeat(std::string_view rest, size_t& least, size_t& most) {
  if (rest.empty()) return true;
  if (rest == "+") {
    most = kNoLimit;
    return true;
  }
  if (!rest.starts_with('{')) return false;
  rest.remove_prefix(1);
  if (!take_number(rest, least) || least == 0) return false;
  most = least;
  if (rest.starts_with(',')) {
    rest.remove_prefix(1);
    most = kNoLimit;
    if (!rest.starts_with('}') && !take_number(rest, most)) return false;
  }
  return rest == "}" && most >= least;
}

}  // namespace

Result<SimplePattern> SimplePattern::from_json(const Json& pattern, std::string_view where) {
  SimplePattern out;
  const Json& text = member(pattern, "String");
  if (text.is_string() && !text.get_ref<const std::string&>().empty()) {
    out.literal_ = text.get<std::string>();
    return out;
  }
  const Json& regex = member(pattern, "Regex");
  if (!regex.is_string() || regex.get_ref<const std::string&>().empty())
    return not_supported(fmt::format("{}: pattern", where), pattern);
  const std::string_view rest = regex.get_ref<const std::string&>();
  if (take_simple(rest, out)) return out;
  out.regex_ = PieceRegex::parse(rest);
  if (!out.regex_) return not_supported(fmt::format("{}: pattern", where), pattern);
  return out;
}

// True if the expression is literal text, or one repeated character or class, which `out` then is.
bool SimplePattern::take_simple(std::string_view rest, SimplePattern& out) {
  std::string literal;
  for (bool first = true; !rest.empty(); first = false) {
    uint8_t classes = 0;
    uint32_t character = 0;
    if (!take_atom(rest, classes, character)) return false;
    SimplePattern one;
    one.classes_ = classes;
    one.character_ = character;
    if (first && take_repeat(rest, one.least_, one.most_)) {
      out = std::move(one);
      return true;
    }
    if (classes != 0) return false;
    append_utf8(character, literal);
  }
  out.literal_ = std::move(literal);
  return true;
}

size_t SimplePattern::match(std::string_view text, size_t i) const {
  if (!literal_.empty()) return text.substr(i).starts_with(literal_) ? i + literal_.size() : i;
  if (regex_) return regex_->match(text, i);
  size_t end = i, count = 0;
  while (count < most_ && end < text.size()) {
    const CodePoint c = read_code_point(text.data() + end);
    const bool same = classes_ != 0 ? (code_point_class(c.value) & classes_) != 0 : c.value == character_;
    if (!same) break;
    end += c.length;
    ++count;
  }
  return count >= least_ ? end : i;
}

void SimplePattern::replace(std::string_view text, std::string_view by, std::string& out) const {
  size_t done = 0;
  for (size_t i = next(text, 0); i < text.size(); i = next(text, i)) {
    const size_t end = match(text, i);
    if (end == i) {
      i = retry(text, i);
      continue;
    }
    out.append(text.substr(done, i - done)).append(by);
    i = done = end;
  }
  out.append(text.substr(done));
}

}  // namespace ostro::tokenizer
