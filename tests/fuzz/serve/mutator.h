// Mutator: damages texts: bytes that change, pieces that are cut out, doubled, spliced with another text, and
// words that readers of JSON, UTF-8 and HTTP have to take care of.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace ostro::fuzz {

class Mutator {
 public:
  // `words`: those of the format. Its numbers follow from the seed alone.
  Mutator(uint64_t seed, std::span<const std::string_view> words) : rng_(seed), words_(words) {}

  uint64_t below(uint64_t n) { return rng_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  std::string_view pick(std::span<const std::string_view> from) { return from[below(from.size())]; }

  // One in eight stays as it is. `other`: a text to splice with.
  std::string damaged(std::string text, std::string_view other) {
    if (one_in(6))
      text = text.substr(0, below(text.size() + 1)) + std::string(other.substr(below(other.size() + 1)));
    for (uint64_t edits = one_in(8) ? 0 : 1 + below(one_in(3) ? 10 : 3); edits > 0; --edits) edit(text);
    return text;
  }

 private:
  void edit(std::string& text) {
    const size_t at = below(text.size() + 1), length = below(one_in(4) ? 64 : 8);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1: text.insert(at, pick(words_)); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(below(text.size() + 1), length)); break;
      case 4: {
        const std::string_view from = pick(words_), to = pick(words_);
        const size_t found = text.find(from, at);
        if (!from.empty() && found != std::string::npos) text.replace(found, from.size(), to);
        break;
      }
      case 5: replace_number(text, at); break;
      case 6:
        if (one_in(6)) text.resize(at);
        if (one_in(40)) text.insert(at, std::string(1 + below(5000), one_in(2) ? '[' : '{'));
        break;
    }
  }

  // The digits from the first one behind `at` on become another number.
  void replace_number(std::string& text, size_t at) {
    static constexpr std::string_view kNumbers[] = {"0",          "-0",
                                                    "-1",         "1",
                                                    "2147483647", "2147483648",
                                                    "4294967296", "9007199254740993",
                                                    "1e",         "1e-9",
                                                    "1e999",      "-1e9",
                                                    "0.5",        "0x10",
                                                    "00",         "18446744073709551615",
                                                    "NaN",        "18446744073709551616"};
    static constexpr const char* kDigits = "0123456789";
    const size_t begin = text.find_first_of(kDigits, at);
    if (begin == std::string::npos) return;
    const size_t end = text.find_first_not_of(kDigits, begin);
    text.replace(begin, (end == std::string::npos ? text.size() : end) - begin, pick(kNumbers));
  }

  std::mt19937_64 rng_;
  std::span<const std::string_view> words_;
};

}  // namespace ostro::fuzz
