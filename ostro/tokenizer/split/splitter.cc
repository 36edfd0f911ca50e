// The fast form of the splitters. It classifies 64 bytes of text at a time into bit masks and finds pieces of
// ASCII by counting bits. Where a non-ASCII byte or the end of the text could matter, the state machines of
// split_rules.h handle one piece.
#include "ostro/tokenizer/split/splitter.h"

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "ostro/tokenizer/split/split_rules.h"

namespace ostro::tokenizer {
namespace {

// The classes of the next 64 bytes, one bit per byte, starting at the first byte of the next piece.
class Window {
 public:
  static constexpr size_t kBytes = 64;

  explicit Window(const char* p) {
    const Half low(p), high(p + 32);
    const auto mask = [&](char bits) { return uint64_t{high.mask(bits)} << 32 | low.mask(bits); };
    upper = mask(0x03);
    lower = mask(0x0C);
    number = mask(0x10);
    newline = mask(0x40);
    space = mask(static_cast<char>(0xE0));
    blank = mask(static_cast<char>(0x80));
    unknown = uint64_t{high.beyond_ascii()} << 32 | low.beyond_ascii();
    apostrophe = uint64_t{high.equal('\'')} << 32 | low.equal('\'');
    slash = uint64_t{high.equal('/')} << 32 | low.equal('/');
  }

  uint64_t letter() const { return upper | lower; }
  // ASCII that is not a letter, number or space.
  uint64_t other() const { return ~(upper | lower | number | space | unknown); }

  // True if the real end of a piece may differ from the end after n bytes that the masks show.
  bool unsure(size_t n) const { return n >= kBytes || (unknown >> n & 1) != 0; }

  // Moves to the byte after a piece. Bytes beyond the old window become unknown.
  void advance(size_t n) {
    for (uint64_t* m : {&upper, &lower, &number, &newline, &space, &blank, &apostrophe, &slash}) *m >>= n;
    unknown = unknown >> n | ~(~uint64_t{0} >> n);
  }

  uint64_t upper, lower, number, newline, space, blank, apostrophe, slash;
  uint64_t unknown;  // non-ASCII, or beyond the window

 private:
  // Classes of 32 bytes, one bit per class, looked up from both nibbles of a byte.
  struct Half {
    explicit Half(const char* p) : bytes(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))) {
      // 01 02: A to O, P to Z; 04 08: a to o, p to z; 10: digits; 20: \t \v \f; 40: \n \r; 80: the space.
      const __m256i by_low =
          _mm256_setr_epi8(char(0x9A), 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x3F, 0x4F, 0x25, 0x25,
                           0x45, 0x05, 0x05, char(0x9A), 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x3F,
                           0x4F, 0x25, 0x25, 0x45, 0x05, 0x05);
      const __m256i by_high =
          _mm256_setr_epi8(0x60, 0, char(0x80), 0x10, 0x01, 0x02, 0x04, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 0,
                           char(0x80), 0x10, 0x01, 0x02, 0x04, 0x08, 0, 0, 0, 0, 0, 0, 0, 0);
      const __m256i nibble = _mm256_set1_epi8(0x0F);
      classes = _mm256_and_si256(
          _mm256_shuffle_epi8(by_low, _mm256_and_si256(bytes, nibble)),
          _mm256_shuffle_epi8(by_high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble)));
    }
    uint32_t mask(char bits) const {
      const __m256i none =
          _mm256_cmpeq_epi8(_mm256_and_si256(classes, _mm256_set1_epi8(bits)), _mm256_setzero_si256());
      return ~static_cast<uint32_t>(_mm256_movemask_epi8(none));
    }
    uint32_t equal(char c) const {
      return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c))));
    }
    uint32_t beyond_ascii() const { return static_cast<uint32_t>(_mm256_movemask_epi8(bytes)); }
    __m256i bytes, classes;
  };
};

size_t run(uint64_t mask) { return static_cast<size_t>(std::countr_one(mask)); }

// Gives the length of the piece at the window's begin, or 0 if the window cannot decide. `text` is at least
// as long as the window.
struct Gpt2 {
  static size_t end(std::string_view text, size_t begin) { return gpt2_end(text, begin); }
  static size_t length(const Window& w, const char* text) {
    if (w.apostrophe & 1) {
      if (w.unknown & 6) return 0;
      if (const size_t n = contraction_letters({text + 1, 2}, false)) return n + 1;
    }
    const uint64_t start = w.blank & 1;
    for (const uint64_t mask : {w.letter(), w.number, w.other()}) {
      if ((mask >> start & 1) == 0) continue;
      const size_t n = start + run(mask >> start);
      return w.unsure(n) ? 0 : n;
    }
    if (w.unsure(start)) return 0;
    const size_t n = run(w.space);
    if (w.unsure(n)) return 0;
    return n == 1 ? 1 : n - 1;
  }
};

template <Rules kRules>
struct Modern {
  static size_t end(std::string_view text, size_t begin) { return modern_end<kRules>(text, begin); }

  static size_t word(const Window& w, const char* text, uint64_t start) {
    if constexpr (!kRules.cased) {
      const size_t n = start + run(w.letter() >> start);
      return w.unsure(n) ? 0 : n;
    }
    size_t n = start + run(w.upper >> start);
    if (w.unsure(n)) return 0;
    n += run(w.lower >> n);
    if (w.unsure(n)) return 0;
    if (kRules.contraction == Contraction::kSuffix && (w.apostrophe >> n & 1)) {
      if (w.unsure(n + 1) || w.unsure(n + 2) || n + 3 >= Window::kBytes) return 0;
      if (const size_t letters = contraction_letters({text + n + 1, 2}, true)) return n + 1 + letters;
    }
    return n;
  }

  static size_t length(const Window& w, const char* text) {
    if (w.letter() & 1) return word(w, text, 0);
    if (w.unknown & 3) return 0;
    if (kRules.contraction == Contraction::kFolded && (w.apostrophe & 1)) {
      if (w.unknown & 4) return 0;
      if (const size_t n = contraction_letters({text + 1, 2}, true)) return n + 1;
    }
    if ((w.letter() & 2) && ((w.number | w.newline) & 1) == 0) return word(w, text, 1);
    if (w.number & 1) {
      constexpr size_t kMost = kRules.digits == 0 ? Window::kBytes : size_t{kRules.digits};
      const size_t n = run(w.number);
      if (n >= kMost) return kMost == Window::kBytes ? 0 : kMost;
      return w.unsure(n) ? 0 : n;
    }
    const uint64_t other = w.other(), start = w.blank & 1;
    if (other >> start & 1) {
      size_t n = start + run(other >> start);
      if (w.unsure(n)) return 0;
      n += run((kRules.slash ? w.newline | w.slash : w.newline) >> n);
      return w.unsure(n) ? 0 : n;
    }
    const size_t n = run(w.space);
    if (w.unsure(n)) return 0;
    const uint64_t newlines = w.newline & ((uint64_t{1} << n) - 1);
    if (newlines != 0) return static_cast<size_t>(std::bit_width(newlines));
    return n == 1 ? 1 : n - 1;
  }
};

// Cuts pieces from 64-byte windows of class masks while the masks decide, and otherwise, near the end or
// beside non-ASCII text, one piece by the state machine of split_rules.h. Both give the same pieces.
template <typename Pattern>
size_t split_by(std::string_view text, size_t begin, std::span<size_t> ends) {
  size_t count = 0;
  while (begin < text.size() && count < ends.size()) {
    // Non-ASCII here or next (after a space): a window would be of no use.
    const bool far = text.size() - begin >= Window::kBytes;
    if (!far || ((text[begin] | text[begin + 1]) & 0x80) != 0) {
      ends[count++] = begin = Pattern::end(text, begin);
      continue;
    }
    Window window(text.data() + begin);
    const size_t first = count;
    while (count < ends.size()) {
      const size_t n = Pattern::length(window, text.data() + begin);
      if (n == 0) break;
      ends[count++] = begin += n;
      window.advance(n);
    }
    if (count == first) ends[count++] = begin = Pattern::end(text, begin);
  }
  return count;
}

constexpr Rules kLlama3Rules{}, kCl100kRules{.digits = 0, .whole_tail = true}, kQwen2Rules{.digits = 1},
    kQwen35Rules{.digits = 1, .marks = true},
    kTekkenRules{.contraction = Contraction::kNone, .digits = 1, .cased = true, .slash = true},
    kO200kRules{.contraction = Contraction::kSuffix, .cased = true, .slash = true};

constexpr KnownPattern kPatterns[] = {
    {Splitter::kGpt2, "gpt2",
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Splitter::kLlama3, "llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Splitter::kCl100k, "cl100k",
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    {Splitter::kQwen2, "qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Splitter::kQwen35, "qwen3.5",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Splitter::kTekken, "tekken",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Splitter::kO200k, "o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

}  // namespace

std::span<const KnownPattern> known_patterns() { return kPatterns; }

std::optional<Splitter> splitter_of_pattern(std::string_view regex) {
  for (const KnownPattern& p : kPatterns)
    if (p.regex == regex) return p.splitter;
  return std::nullopt;
}

std::string_view pattern_of(Splitter splitter) {
  for (const KnownPattern& p : kPatterns)
    if (p.splitter == splitter) return p.regex;
  return "";
}

// The line end must be the whole run of white space: how a longer run is cut depends on what follows it.
size_t last_cut(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t i = text.size(); i > 2; --i) {
    if (text[i - 2] == '\n' && is_letter(text[i - 1]) && text[i - 3] > ' ' && text[i - 3] < 0x7F)
      return i - 1;
  }
  return 0;
}

size_t split(Splitter splitter, std::string_view text, size_t begin, std::span<size_t> ends) {
  switch (splitter) {
    case Splitter::kGpt2: return split_by<Gpt2>(text, begin, ends);
    case Splitter::kLlama3: return split_by<Modern<kLlama3Rules>>(text, begin, ends);
    case Splitter::kCl100k: return split_by<Modern<kCl100kRules>>(text, begin, ends);
    case Splitter::kQwen2: return split_by<Modern<kQwen2Rules>>(text, begin, ends);
    case Splitter::kQwen35: return split_by<Modern<kQwen35Rules>>(text, begin, ends);
    case Splitter::kTekken: return split_by<Modern<kTekkenRules>>(text, begin, ends);
    case Splitter::kO200k: return split_by<Modern<kO200kRules>>(text, begin, ends);
    case Splitter::kNone: break;
  }
  ends[0] = text.size();
  return 1;
}

}  // namespace ostro::tokenizer
