#include "ostro/tokenizer/split/piece_regex.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();
constexpr size_t kMostCounted = 1000;

bool is_ascii_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

// Marks are what is in both halves of words without being a letter.
bool is_mark(uint8_t classes) {
  return (classes & (kUpper | kLower)) == (kUpper | kLower) && (classes & kLetter) == 0;
}

}  // namespace

bool PieceRegex::Set::looked_up(uint32_t c) const {
  const uint8_t of = code_point_class(c);
  const bool in =
      (of & classes) != 0 || (marks && is_mark(of)) ||
      std::any_of(ranges.begin(), ranges.end(), [c](const auto& r) { return c >= r.first && c <= r.second; });
  return in != negated;
}

void PieceRegex::Set::finish() {
  for (uint32_t c = 0; c < ascii.size(); ++c) ascii[c] = looked_up(c);
}

// Takes an expression apart from its front. Every function returns false for what is not known.
class PieceRegex::Parser {
 public:
  explicit Parser(std::string_view regex) : rest_(regex) {}

  bool rows(std::vector<Row>& out) {
    do {
      if (!row(out.emplace_back())) return false;
    } while (take("|"));
    return rest_.empty();
  }

 private:
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool row(Row& out) {
    size_t least = 0;
    while (!rest_.empty() && rest_.front() != '|') {
      Item item;
      if (take("$")) {
        item.kind = Kind::kEndOfLine;
      } else if (rest_.starts_with("(?!") || rest_.starts_with("(?=")) {
        item.kind = rest_[2] == '!' ? Kind::kNotAhead : Kind::kAhead;
        rest_.remove_prefix(3);
        if (!characters(item.set) || !take(")")) return false;
      } else {
        if (!characters(item.set) || !repeat(item)) return false;
        least += item.least;
      }
      item.set.finish();
      out.push_back(std::move(item));
    }
    return least > 0;
  }

  // "", "?", "*", "+", "{n}", "{n,}" or "{n,m}"; a "+" behind the first three keeps what it took. Behind
  // braces a "+" or "?" means something else to Oniguruma, as a lazy "?" does; none of these is known.
  bool repeat(Item& item) {
    if (take("?")) {
      item.least = 0;
    } else if (take("*")) {
      item.least = 0, item.most = kAnyNumber;
    } else if (take("+")) {
      item.most = kAnyNumber;
    } else if (take("{")) {
      if (!number(item.least)) return false;
      item.most = item.least;
      if (take(",") && !number(item.most)) item.most = kAnyNumber;
      return take("}") && item.most >= item.least && item.most > 0 && !rest_.starts_with('+') &&
             !rest_.starts_with('?');
    } else {
      return true;
    }
    item.keeps = take("+");
    return !rest_.starts_with('?') && !rest_.starts_with('*') && !rest_.starts_with('+');
  }

  bool number(size_t& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value > kMostCounted) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  // One character, or a class in brackets.
  bool characters(Set& set) {
    if (take("[")) return bracket(set);
    if (rest_.empty()) return false;
    if (take("\\S")) {
      set.classes = kSpace;
      return set.negated = true;
    }
    bool is_class = false;
    uint32_t c = 0;
    constexpr std::string_view kSpecial = ".^$*+?()[]{}|";
    if (kSpecial.find(rest_.front()) != std::string_view::npos || !member(set, c, is_class)) return false;
    if (!is_class) set.ranges.emplace_back(c, c);
    return true;
  }

  bool bracket(Set& set) {
    set.negated = take("^");
    if (rest_.starts_with(']')) return false;
    while (!take("]")) {
      bool is_class = false;
      uint32_t first = 0, last = 0;
      // A bracket inside, and "&&", begin what is not known.
      if (rest_.empty() || rest_.front() == '[' || rest_.starts_with("&&") || !member(set, first, is_class))
        return false;
      if (is_class) continue;
      last = first;
      if (rest_.starts_with('-') && !rest_.starts_with("-]")) {
        rest_.remove_prefix(1);
        if (rest_.empty() || rest_.front() == '[' || !member(set, last, is_class) || is_class || last < first)
          return false;
      }
      set.ranges.emplace_back(first, last);
    }
    return true;
  }

  // Takes a class of characters, which it adds to the set, or else one character.
  bool member(Set& set, uint32_t& c, bool& is_class) {
    constexpr std::pair<std::string_view, uint8_t> kClasses[] = {{"\\s", kSpace},
                                                                 {"\\p{L}", kLetter},
                                                                 {"\\p{N}", kNumber},
                                                                 {"\\p{P}", kPunctuation},
                                                                 {"\\p{S}", kSymbol}};
    constexpr std::pair<std::string_view, uint32_t> kNames[] = {{"\\r", '\r'}, {"\\n", '\n'}, {"\\t", '\t'}};
    is_class = true;
    for (const auto& [name, bits] : kClasses) {
      if (!take(name)) continue;
      set.classes = static_cast<uint8_t>(set.classes | bits);
      return true;
    }
    if (take("\\p{M}")) return set.marks = true;
    is_class = false;
    for (const auto& [name, value] : kNames) {
      if (!take(name)) continue;
      c = value;
      return true;
    }
    if (take("\\") && (rest_.empty() || is_ascii_letter_or_digit(rest_.front()))) return false;
    const CodePoint read = read_code_point(rest_.data());
    c = read.value;
    rest_.remove_prefix(read.length);
    return true;
  }

  std::string_view rest_;
};

std::optional<PieceRegex> PieceRegex::parse(std::string_view regex) {
  PieceRegex out;
  if (!Parser(regex).rows(out.rows_)) return std::nullopt;
  return out;
}

// Takes as many characters as the item may have, then gives them back one by one until the rest of the row
// matches. The recursion is as deep as the row is long.
bool PieceRegex::row_matches(const Row& row, size_t item, std::string_view text, size_t i, size_t& end) {
  if (item == row.size()) {
    end = i;
    return true;
  }
  const Item& one = row[item];
  if (one.kind == Kind::kEndOfLine)
    return (i == text.size() || text[i] == '\n') && row_matches(row, item + 1, text, i, end);
  if (one.kind != Kind::kCharacters) {
    const bool holds = i < text.size() && one.set.holds(read_code_point(text.data() + i).value);
    return holds == (one.kind == Kind::kAhead) && row_matches(row, item + 1, text, i, end);
  }
  size_t count = 0, at = i, least_at = i;
  while (count < one.most && at < text.size()) {
    const CodePoint c = read_code_point(text.data() + at);
    if (!one.set.holds(c.value)) break;
    at += c.length;
    if (++count == one.least) least_at = at;
  }
  if (count < one.least) return false;
  if (row_matches(row, item + 1, text, at, end)) return true;
  if (one.keeps) return false;
  while (at > least_at) {
    do --at;
    while ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
    if (row_matches(row, item + 1, text, at, end)) return true;
  }
  return false;
}

size_t PieceRegex::match(std::string_view text, size_t i) const {
  size_t end = i;
  for (const Row& row : rows_)
    if (row_matches(row, 0, text, i, end)) return end;
  return i;
}

// Where one row begins with a run of any length (\s+$), and nothing matched behind any part of the run from i
// on, no later part of it can do better: the search goes on behind the run. So it takes linear time.
size_t PieceRegex::retry(std::string_view text, size_t i) const {
  const size_t next = i + read_code_point(text.data() + i).length;
  const Item& first = rows_.front().front();
  if (rows_.size() > 1 || first.kind != Kind::kCharacters || first.least != 1 || first.most != kAnyNumber)
    return next;
  size_t at = i;
  while (at < text.size()) {
    const CodePoint c = read_code_point(text.data() + at);
    if (!first.set.holds(c.value)) break;
    at += c.length;
  }
  return std::max(at, next);
}

}  // namespace ostro::tokenizer
