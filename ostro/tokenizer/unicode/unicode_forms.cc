#include "ostro/tokenizer/unicode/unicode_forms.h"

#include <algorithm>

#include "ostro/tokenizer/unicode/normalization_data.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

bool composes(Form form) { return form == Form::kNfc || form == Form::kNfkc; }
bool is_compatible(Form form) { return form == Form::kNfkc || form == Form::kNfkd; }

// The properties that prevent a code point from being copied unchanged. A code point that may compose with
// the one before it has one of them, too.
uint16_t unsafe_bits(Form form) {
  switch (form) {
    case Form::kNfc: return kChangesNfc | kComposesBack;
    case Form::kNfkc: return kChangesNfkc | kComposesBack;
    case Form::kNfd: return kChangesNfd;
    case Form::kNfkd: return kChangesNfkd;
  }
  return 0;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Sorts the combining marks of every run by class (canonical ordering, stable).
void order_marks(std::u32string& text) {
  for (size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(i),
                     text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

// Canonical composition in place. Each code point composes with the last starter, unless a code point between
// them blocks it.
void compose(std::u32string& text) {
  size_t kept = 0, starter = std::u32string::npos;
  uint8_t last_class = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    const uint8_t own_class = combining_class(c);
    const bool adjacent = starter != std::u32string::npos && starter + 1 == kept;
    if (starter != std::u32string::npos && (adjacent || last_class < own_class)) {
      if (const uint32_t both = composed(text[starter], c)) {
        text[starter] = both;
        continue;
      }
    }
    if (own_class == 0) starter = kept;
    last_class = own_class;
    text[kept++] = c;
  }
  text.resize(kept);
}

void append_region(Form form, std::string_view text, std::u32string& work, std::string& out) {
  work.clear();
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = read_code_point(text.data() + i);
    append_decomposition(c.value, is_compatible(form), work);
    i += c.length;
  }
  order_marks(work);
  if (composes(form)) compose(work);
  for (const char32_t c : work) append_utf8(c, out);
}

}  // namespace

// Copies safe stretches and normalizes only regions. A region begins at the last safe code point, since a
// mark may compose with it, and ends at the next one that is safe.
void append_form(Form form, std::string_view text, std::string& out) {
  const uint16_t unsafe = unsafe_bits(form);
  std::u32string work;
  size_t done = 0;  // text before this is in `out`
  size_t safe = 0;  // start of the last code point that does not depend on what comes before it
  bool in_region = false;
  const auto settle = [&](size_t end) {
    if (in_region) {
      append_region(form, text.substr(done, end - done), work, out);
    } else {
      out.append(text.substr(done, end - done));
    }
    done = end;
  };
  for (size_t i = 0; i < text.size();) {
    if (is_ascii(text[i])) {  // ASCII never changes; it composes only with following code points
      if (in_region) settle(i), in_region = false;
      safe = i++;
      continue;
    }
    const CodePoint c = read_code_point(text.data() + i);
    const bool is_safe = (norm_bits(c.value) & unsafe) == 0 && combining_class(c.value) == 0;
    if (is_safe) {
      if (in_region) settle(i), in_region = false;
      safe = i;
    } else if (!in_region) {
      settle(safe);
      in_region = true;
    }
    i += c.length;
  }
  settle(text.size());
}

void append_lower(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = read_code_point(text.data() + i);
    if (norm_bits(c.value) & kHasLower) {
      append_utf8(lower_case(c.value), out);
      if (c.value == 0x130) append_utf8(0x307, out);
    } else {
      out.append(text.substr(i, c.length));
    }
    i += c.length;
  }
}

void append_without_marks(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = read_code_point(text.data() + i);
    if ((norm_bits(c.value) & kMark) == 0) out.append(text.substr(i, c.length));
    i += c.length;
  }
}

// The rules of Unicode Standard Annex 29, as a state machine over the end of the cluster so far. GBx is the
// name of a rule.
size_t grapheme_end(std::string_view text, size_t begin) {
  const auto bits_at = [&](size_t i, uint32_t& length) {
    const CodePoint c = read_code_point(text.data() + i);
    length = c.length;
    return norm_bits(c.value);
  };
  uint32_t length = 0;
  uint16_t bits = bits_at(begin, length);
  auto last = static_cast<Grapheme>(bits & kGraphemeBits);
  bool picture = last == Grapheme::kPictographic;   // Pictographic Extend* so far
  bool picture_zwj = false;                         // and then ZWJ
  bool odd_regional = last == Grapheme::kRegional;  // an odd number of flags' letters
  bool consonant = (bits & kIndicConsonant) != 0,
       linked = false;  // Indic: consonant, marks, a linker among them
  size_t end = begin + length;
  for (; end < text.size(); end += length) {
    bits = bits_at(end, length);
    const auto next = static_cast<Grapheme>(bits & kGraphemeBits);
    const auto is_control = [](Grapheme g) {
      return g == Grapheme::kControl || g == Grapheme::kCr || g == Grapheme::kLf;
    };
    const bool extends = next == Grapheme::kExtend || next == Grapheme::kZwj;
    bool joins = extends || next == Grapheme::kSpacingMark || last == Grapheme::kPrepend;  // GB9, 9a, 9b
    using enum Grapheme;
    joins |=
        last == kHangulL && (next == kHangulL || next == kHangulV || next == kHangulLv || next == kHangulLvt);
    joins |= (last == kHangulLv || last == kHangulV) && (next == kHangulV || next == kHangulT);
    joins |= (last == kHangulLvt || last == kHangulT) && next == kHangulT;
    joins |= consonant && linked && (bits & kIndicConsonant) != 0;                 // GB9c
    joins |= picture_zwj && next == kPictographic;                                 // GB11
    joins |= odd_regional && next == kRegional;                                    // GB12, 13
    if (is_control(last) || is_control(next)) joins = last == kCr && next == kLf;  // GB3 to 5
    if (!joins) break;
    picture_zwj = picture && next == kZwj;
    picture = next == kPictographic || (picture && next == kExtend);
    odd_regional = next == kRegional && !odd_regional;
    if (bits & kIndicConsonant) {
      consonant = true, linked = false;
    } else if (extends) {
      linked |= (bits & kIndicLinker) != 0;
    } else {
      consonant = linked = false;
    }
    last = next;
  }
  return end;
}

}  // namespace ostro::tokenizer
