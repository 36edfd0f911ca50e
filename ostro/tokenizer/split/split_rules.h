// gpt2_end, modern_end: the splitting patterns as state machines, one piece and one code point at a time.
// splitter.cc uses them where its fast code for ASCII cannot decide. Private to the splitter.
#pragma once

#include <cstddef>
#include <string_view>

#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {

enum class Contraction {
  kExact,   // 's|'t|'re|'ve|'m|'ll|'d, tried first
  kFolded,  // as kExact, but (?i:...), tried first
  kSuffix,  // (?i:...)? at the end of a word
  kNone,
};

// The settings in which Llama 3's pattern and newer ones differ:
//   contraction | [^\r\n\p{L}\p{N}]?WORD | \p{N}{1,digits} | ?[^\s\p{L}\p{N}]+TAIL* | \s*[\r\n]+ | \s+(?!\S)
//   | \s+
struct Rules {
  Contraction contraction = Contraction::kFolded;
  int digits = 3;           // most digits in a piece; 0: no limit
  bool marks = false;       // WORD is [\p{L}\p{M}]+, and other classes exclude marks
  bool cased = false;       // WORD is Upper*Lower+ or Upper+Lower* (unicode.h)
  bool slash = false;       // TAIL is [\r\n/], not [\r\n]
  bool whole_tail = false;  // spaces at the end of the text are one piece: \s++$ comes before \s*[\r\n]
};

// A view of the text as code points with their classes.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  struct Char {
    uint32_t value;
    uint32_t length;  // 0 at the end of the text
    uint8_t classes;

    bool at_end() const { return length == 0; }
    bool is(uint8_t c) const { return (classes & c) != 0; }
    bool is_newline() const { return value == '\n' || value == '\r'; }
    bool is_none_of(uint8_t c) const { return length != 0 && (classes & c) == 0; }
  };

  Char at(size_t i) const {
    if (i >= text_.size()) return {0, 0, 0};
    const CodePoint c = read_code_point(text_.data() + i);
    return {c.value, c.length, code_point_class(c.value)};
  }

  // The end of the run from i on of characters that have one of `classes`.
  size_t skip(size_t i, uint8_t classes) const {
    for (Char c = at(i); c.is(classes); c = at(i)) i += c.length;
    return i;
  }
  size_t skip_none_of(size_t i, uint8_t classes) const {
    for (Char c = at(i); c.is_none_of(classes); c = at(i)) i += c.length;
    return i;
  }

 private:
  std::string_view text_;
};

// The length of a contraction's letters after the apostrophe ('s 't 're 've 'm 'll 'd), or 0. With `fold`,
// upper case counts too, and U+017F (long s) counts as s. For these letters this is all that (?i:...) adds.
inline size_t contraction_letters(std::string_view after, bool fold) {
  const auto letter = [&](size_t i) {
    if (i >= after.size()) return '\0';
    const char c = after[i];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  switch (letter(0)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 1;
    case 'r':
    case 'v': return letter(1) == 'e' ? 2 : 0;
    case 'l': return letter(1) == 'l' ? 2 : 0;
    default: return fold && after.starts_with("\xC5\xBF") ? 2 : 0;
  }
}

// The length of a contraction with its apostrophe at `begin`, or 0.
inline size_t contraction(std::string_view text, size_t begin, bool fold) {
  if (begin >= text.size() || text[begin] != '\'') return 0;
  const size_t letters = contraction_letters(text.substr(begin + 1), fold);
  return letters == 0 ? 0 : letters + 1;
}

// \s+(?!\S)|\s+ : a run of spaces leaves its last space to the following word, unless the run is a single
// space.
inline size_t space_end(const Reader& text, size_t begin) {
  size_t end = begin, last = begin;
  for (auto c = text.at(end); c.is(kSpace); c = text.at(end)) {
    last = end;
    end += c.length;
  }
  return text.at(end).at_end() || last == begin ? end : last;
}

// The end of the piece of GPT-2's pattern that begins at `begin` (< size).
inline size_t gpt2_end(std::string_view bytes, size_t begin) {
  const Reader text(bytes);
  if (const size_t n = contraction(bytes, begin, false)) return begin + n;
  // " ?" before a word, a number or a run of anything else.
  const size_t start = bytes[begin] == ' ' ? begin + 1 : begin;
  const auto c = text.at(start);
  if (c.is(kLetter)) return text.skip(start, kLetter);
  if (c.is(kNumber)) return text.skip(start, kNumber);
  if (c.is_none_of(kLetter | kNumber | kSpace)) return text.skip_none_of(start, kLetter | kNumber | kSpace);
  return space_end(text, begin);
}

// The end of a match of Upper*Lower+ at `start`, or `start` if there is none. If no Lower follows what Upper*
// took, Upper* gives characters back: the match then ends with the last character of its run that is in both
// classes.
inline size_t lower_word_end(const Reader& text, size_t start) {
  size_t end = start, last_both = start;
  auto c = text.at(end);
  for (; c.is(kUpper); c = text.at(end)) {
    end += c.length;
    if (c.is(kLower)) last_both = end;
  }
  return c.is(kLower) ? text.skip(end, kLower) : last_both;
}

// The end of the word that begins at `begin`, possibly after one other character; `begin` if there is none.
inline size_t cased_word_end(const Reader& text, size_t begin, Reader::Char first) {
  const size_t second = begin + first.length;
  const bool prefix = !first.is(kLetter | kNumber) && !first.is_newline();
  if (prefix) {
    if (const size_t end = lower_word_end(text, second); end != second) return end;
  }
  if (const size_t end = lower_word_end(text, begin); end != begin) return end;
  // Now Upper+Lower*. There is no Lower in it, else the rule above would have matched.
  if (prefix) {
    if (const size_t end = text.skip(second, kUpper); end != second) return end;
  }
  return text.skip(begin, kUpper);
}

// The end of the piece that begins at `begin` (< size).
template <Rules kRules>
size_t modern_end(std::string_view bytes, size_t begin) {
  constexpr uint8_t kWords = kRules.marks ? kLetter | kUpper : kLetter;  // Upper has all marks
  constexpr uint8_t kNotOther = kWords | kNumber | kSpace;
  const Reader text(bytes);
  const auto first = text.at(begin);
  if constexpr (kRules.contraction == Contraction::kFolded) {
    if (const size_t n = contraction(bytes, begin, true)) return begin + n;
  }
  if constexpr (kRules.cased) {
    size_t end = cased_word_end(text, begin, first);
    if (end != begin) {
      if (kRules.contraction == Contraction::kSuffix) end += contraction(bytes, end, true);
      return end;
    }
  } else {
    if (first.is(kWords)) return text.skip(begin, kWords);
    const bool prefix = !first.is(kNumber) && !first.is_newline();
    if (prefix && text.at(begin + first.length).is(kWords)) return text.skip(begin + first.length, kWords);
  }
  if (first.is(kNumber)) {
    size_t end = begin;
    for (int i = 0; (kRules.digits == 0 || i < kRules.digits) && text.at(end).is(kNumber); ++i)
      end += text.at(end).length;
    return end;
  }
  const size_t start = first.value == ' ' ? begin + 1 : begin;
  if (text.at(start).is_none_of(kNotOther)) {
    size_t end = text.skip_none_of(start, kNotOther);
    while (text.at(end).is_newline() || (kRules.slash && text.at(end).value == '/')) ++end;
    return end;
  }
  // Only white space is left. \s*[\r\n]+ takes the run up to its last line end.
  size_t end = begin, after_newline = 0;
  for (auto c = first; c.is(kSpace); c = text.at(end)) {
    end += c.length;
    if (c.is_newline()) after_newline = end;
  }
  if (kRules.whole_tail && end == bytes.size()) return end;
  return after_newline != 0 ? after_newline : space_end(text, begin);
}

}  // namespace ostro::tokenizer
