#include "ostro/chat/value/text.h"

#include <algorithm>
#include <iterator>

#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {
namespace {

struct CaseRun {
  uint32_t first, last, step;
  int32_t delta;
};
struct CaseText {
  uint32_t point;
  const char* text;
};
struct PointRange {
  uint32_t first, last;
};
#include "ostro/chat/value/case_tables.inc"

template <size_t N>
bool in_ranges(const PointRange (&ranges)[N], uint32_t c) {
  const auto it = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                   [](uint32_t value, const PointRange& r) { return value < r.first; });
  return it != std::begin(ranges) && c <= std::prev(it)->last;
}

bool is_ascii_letter(uint32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 0x80; }
bool is_cased(uint32_t c) { return c < 0x80 ? is_ascii_letter(c) : in_ranges(kCased, c); }

// Appends the case mapping of a code point above ASCII.
template <size_t N, size_t M>
void append_mapped(const CaseRun (&runs)[N], const CaseText (&texts)[M], uint32_t c, std::string& out) {
  const auto special = std::lower_bound(std::begin(texts), std::end(texts), c,
                                        [](const CaseText& t, uint32_t value) { return t.point < value; });
  if (special != std::end(texts) && special->point == c) {
    out += special->text;
    return;
  }
  const auto next = std::upper_bound(std::begin(runs), std::end(runs), c,
                                     [](uint32_t value, const CaseRun& r) { return value < r.first; });
  if (next != std::begin(runs)) {
    const CaseRun& run = *std::prev(next);
    if (c <= run.last && (c - run.first) % run.step == 0)
      c = static_cast<uint32_t>(static_cast<int64_t>(c) + run.delta);
  }
  tokenizer::append_utf8(c, out);
}

void append_upper(uint32_t c, std::string& out) {
  if (c < 0x80)
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  else
    append_mapped(kUpperRuns, kUpperTexts, c, out);
}

void append_title(uint32_t c, std::string& out) {
  if (c < 0x80)
    append_upper(c, out);
  else
    append_mapped(kTitleRuns, kTitleTexts, c, out);
}

// True if the capital sigma at `i` ends a word: a cased letter comes before it, and none after it.
// Case-ignorable characters are skipped.
bool is_final_sigma(const std::vector<uint32_t>& points, size_t i) {
  size_t before = i;
  while (before > 0 && in_ranges(kCaseIgnorable, points[before - 1])) --before;
  if (before == 0 || !is_cased(points[before - 1])) return false;
  size_t after = i + 1;
  while (after < points.size() && in_ranges(kCaseIgnorable, points[after])) ++after;
  return after == points.size() || !is_cased(points[after]);
}

void append_lower(const std::vector<uint32_t>& points, size_t i, std::string& out) {
  const uint32_t c = points[i];
  if (c < 0x80)
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else if (c == 0x3A3)
    tokenizer::append_utf8(is_final_sigma(points, i) ? 0x3C2 : 0x3C3, out);
  else
    append_mapped(kLowerRuns, kLowerTexts, c, out);
}

std::vector<uint32_t> points_of(std::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + i);
    out.push_back(c.value);
    i += c.length;
  }
  return out;
}

size_t last_begin(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
  return i;
}

template <typename Wanted>
std::string_view strip_if(std::string_view text, Side side, const Wanted& wanted) {
  while (side != Side::kRight && !text.empty()) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(text.data());
    if (!wanted(c.value)) break;
    text.remove_prefix(c.length);
  }
  while (side != Side::kLeft && !text.empty()) {
    const size_t begin = last_begin(text);
    if (!wanted(tokenizer::read_code_point(text.data() + begin).value)) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

bool is_line_end(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

bool is_space(uint32_t c) {
  return (tokenizer::code_point_class(c) & tokenizer::kSpace) != 0 ||
         (c >= 0x1C && c <= 0x1F);  // str.isspace of Python differs for these four
}

bool is_printable(uint32_t c) { return c < 0x80 ? c >= 0x20 && c < 0x7F : !in_ranges(kNotPrintable, c); }

size_t length(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t n = tokenizer::read_code_point(text.data()).length;
    out.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return out;
}

size_t byte_offset(std::string_view text, size_t n) {
  size_t i = 0;
  for (; n > 0 && i < text.size(); --n) i += tokenizer::read_code_point(text.data() + i).length;
  return i;
}

std::string_view strip(std::string_view text, Side side) {
  return strip_if(text, side, [](uint32_t c) { return is_space(c); });
}

std::string_view strip(std::string_view text, Side side, std::string_view of) {
  const std::vector<uint32_t> set = points_of(of);
  return strip_if(text, side, [&](uint32_t c) { return std::find(set.begin(), set.end(), c) != set.end(); });
}

std::string upper(std::string_view text) {
  std::string out;
  for (const uint32_t c : points_of(text)) append_upper(c, out);
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  const std::vector<uint32_t> points = points_of(text);
  for (size_t i = 0; i < points.size(); ++i) append_lower(points, i, out);
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  const std::vector<uint32_t> points = points_of(text);
  if (!points.empty()) append_title(points[0], out);
  for (size_t i = 1; i < points.size(); ++i) append_lower(points, i, out);
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  const std::vector<uint32_t> points = points_of(text);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && is_cased(points[i - 1]))
      append_lower(points, i, out);
    else
      append_title(points[i], out);
  }
  return out;
}

bool has_case(std::string_view text, bool upper_case) {
  bool any = false;
  for (const uint32_t c : points_of(text)) {
    if (!is_cased(c)) continue;
    std::string self, mapped;
    tokenizer::append_utf8(c, self);
    upper_case ? append_upper(c, mapped) : append_lower({c}, 0, mapped);
    if (mapped != self) return false;
    any = true;
  }
  return any;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to, int64_t count) {
  std::string out;
  size_t at = 0;
  if (from.empty()) {  // an empty `from` matches between all characters, and at both ends
    for (; count != 0; --count) {
      out += to;
      if (at == text.size()) return out;
      const size_t n = tokenizer::read_code_point(text.data() + at).length;
      out += text.substr(at, n);
      at += n;
    }
    return out += text.substr(at);
  }
  for (; count != 0; --count) {
    const size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    (out += text.substr(at, found - at)) += to;
    at = found + from.size();
  }
  return out += text.substr(at);
}

std::vector<std::string> split_space(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string> out;
  while (true) {
    text = strip(text, from_right ? Side::kRight : Side::kLeft);
    if (text.empty()) break;
    if (limit >= 0 && static_cast<int64_t>(out.size()) == limit) {
      out.emplace_back(text);
      break;
    }
    if (from_right) {
      size_t begin = text.size();
      while (begin > 0) {
        const size_t previous = last_begin(text.substr(0, begin));
        if (is_space(tokenizer::read_code_point(text.data() + previous).value)) break;
        begin = previous;
      }
      out.emplace_back(text.substr(begin));
      text = text.substr(0, begin);
    } else {
      size_t end = 0;
      while (end < text.size()) {
        const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + end);
        if (is_space(c.value)) break;
        end += c.length;
      }
      out.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split(std::string_view text, std::string_view by, int64_t limit, bool from_right) {
  std::vector<std::string> out;
  for (; limit != 0; --limit) {
    const size_t found = from_right ? text.rfind(by) : text.find(by);
    if (found == std::string_view::npos) break;
    out.emplace_back(from_right ? text.substr(found + by.size()) : text.substr(0, found));
    text = from_right ? text.substr(0, found) : text.substr(found + by.size());
  }
  out.emplace_back(text);
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + i);
    const size_t at = i;
    i += c.length;
    if (!is_line_end(c.value)) continue;
    if (c.value == '\r' && i < text.size() && text[i] == '\n') ++i;
    out.emplace_back(text.substr(begin, (keep_ends ? i : at) - begin));
    begin = i;
  }
  if (begin < text.size()) out.emplace_back(text.substr(begin));
  return out;
}

}  // namespace ostro::chat::jinja
