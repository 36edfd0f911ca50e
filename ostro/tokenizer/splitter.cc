#include "ostro/tokenizer/splitter.h"

#include "ostro/tokenizer/unicode.h"
#include "ostro/tokenizer/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr uint8_t kAnyClass = kLetter | kNumber | kSpace;

// The text as a row of code points with their classes.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  struct Char {
    uint32_t value;
    uint32_t length;  // 0 at the end of the text
    uint8_t classes;

    bool at_end() const { return length == 0; }
    bool is(uint8_t c) const { return (classes & c) != 0; }
    bool is_other() const { return length != 0 && (classes & kAnyClass) == 0; }  // [^\s\p{L}\p{N}]
    bool is_newline() const { return value == '\n' || value == '\r'; }
  };

  Char at(size_t i) const {
    if (i >= text_.size()) return {0, 0, 0};
    const CodePoint c = read_code_point(text_.data() + i);
    return {c.value, c.length, code_point_class(c.value)};
  }

  // The end of the run of characters that have one of `classes`, from i on.
  size_t skip(size_t i, uint8_t classes) const {
    for (Char c = at(i); c.is(classes); c = at(i)) i += c.length;
    return i;
  }
  size_t skip_other(size_t i) const {
    for (Char c = at(i); c.is_other(); c = at(i)) i += c.length;
    return i;
  }

 private:
  std::string_view text_;
};

// Length of the letters after an apostrophe that make a contraction ('s 't 're 've 'm 'll 'd), or 0. With
// `fold`, upper case counts, and U+017F (long s) as s: the whole of what (?i:...) adds for these letters.
size_t contraction(std::string_view after, bool fold) {
  const auto letter = [&](size_t i) {
    if (i >= after.size()) return '\0';
    const char c = after[i];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  switch (letter(0)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 1;
    case 'r':
    case 'v':
      return letter(1) == 'e' ? 2 : 0;
    case 'l':
      return letter(1) == 'l' ? 2 : 0;
    default:
      return fold && after.starts_with("\xC5\xBF") ? 2 : 0;
  }
}

// \s+(?!\S)|\s+ : a run of spaces leaves its last one to the word that follows, unless it is the only one.
size_t space_end(const Reader& text, size_t begin) {
  size_t end = begin, last = begin;
  for (auto c = text.at(end); c.is(kSpace); c = text.at(end)) {
    last = end;
    end += c.length;
  }
  return text.at(end).at_end() || last == begin ? end : last;
}

size_t gpt2_end(std::string_view bytes, size_t begin) {
  const Reader text(bytes);
  const auto first = text.at(begin);
  if (first.value == '\'') {
    if (const size_t n = contraction(bytes.substr(begin + 1), false)) return begin + 1 + n;
  }
  // " ?" before a word, a number or a run of anything else.
  const size_t start = first.value == ' ' ? begin + 1 : begin;
  const auto c = text.at(start);
  if (c.is(kLetter)) return text.skip(start, kLetter);
  if (c.is(kNumber)) return text.skip(start, kNumber);
  if (c.is_other()) return text.skip_other(start);
  return space_end(text, begin);
}

size_t llama3_end(std::string_view bytes, size_t begin) {
  const Reader text(bytes);
  const auto first = text.at(begin);
  if (first.value == '\'') {
    if (const size_t n = contraction(bytes.substr(begin + 1), true)) return begin + 1 + n;
  }
  if (first.is(kLetter)) return text.skip(begin, kLetter);
  if (first.is(kNumber)) {
    size_t end = begin;
    for (int i = 0; i < 3 && text.at(end).is(kNumber); ++i) end += text.at(end).length;
    return end;
  }
  const auto second = text.at(begin + first.length);
  if (!first.is_newline() && second.is(kLetter)) return text.skip(begin + first.length, kLetter);
  if (first.is_other() || (first.value == ' ' && second.is_other())) {
    size_t end = text.skip_other(first.value == ' ' ? begin + 1 : begin);
    while (text.at(end).is_newline()) ++end;
    return end;
  }
  // Only spaces are left. \s*[\r\n]+ takes the run up to its last line end.
  size_t end = begin, after_newline = 0;
  for (auto c = first; c.is(kSpace); c = text.at(end)) {
    end += c.length;
    if (c.is_newline()) after_newline = end;
  }
  return after_newline != 0 ? after_newline : space_end(text, begin);
}

}  // namespace

size_t piece_end(Splitter splitter, std::string_view text, size_t begin) {
  switch (splitter) {
    case Splitter::kGpt2:
      return gpt2_end(text, begin);
    case Splitter::kLlama3:
      return llama3_end(text, begin);
    case Splitter::kNone:
      break;
  }
  return text.size();
}

}  // namespace ostro::tokenizer
