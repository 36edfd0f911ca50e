#include "ostro/corpus_check/words.h"

#include "ostro/chat/value/text.h"
#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::corpus_check {
namespace {

bool stands_alone(uint32_t c) {
  return (c >= 0x3400 && c <= 0x9FFF) || (c >= 0x20000 && c <= 0x3FFFF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x3040 && c <= 0x30FF) || (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1780 && c <= 0x17FF) ||
         (c >= 0x1000 && c <= 0x109F);
}

// Calls take(word) for every word.
template <typename Take>
void each_word(std::string_view text, const Take& take) {
  std::string word;
  bool ascii = true;
  const auto flush = [&] {
    if (word.empty()) return;
    if (ascii)
      take(word);
    else
      take(chat::jinja::lower(word));
    word.clear();
    ascii = true;
  };
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      const unsigned char small = byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
      if ((small >= 'a' && small <= 'z') || (small >= '0' && small <= '9') || small == '_')
        word += static_cast<char>(small);
      else
        flush();
      ++i;
      continue;
    }
    const tokenizer::CodePoint c = tokenizer::read_code_point(text.data() + i);
    if ((tokenizer::code_point_class(c.value) & tokenizer::kWord) == 0) {
      flush();
    } else if (stands_alone(c.value)) {
      flush();
      take(std::string(text.substr(i, c.length)));
    } else {
      ascii = false;
      word.append(text.substr(i, c.length));
    }
    i += c.length;
  }
  flush();
}

uint64_t hash_of(std::string_view word) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : word) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return mix64(h);
}

constexpr uint64_t kBase = 0x9FB21C651E98DF25ull;  // odd

}  // namespace

uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

std::vector<std::string> normalized_words(std::string_view text) {
  std::vector<std::string> out;
  each_word(text, [&out](const std::string& word) { out.push_back(word); });
  return out;
}

std::vector<uint64_t> word_hashes(std::string_view text) {
  std::vector<uint64_t> out;
  each_word(text, [&out](const std::string& word) { out.push_back(hash_of(word)); });
  return out;
}

StretchHashes::StretchHashes(const std::vector<uint64_t>& words)
    : prefix_(words.size() + 1, 0), power_(words.size() + 1, 1) {
  for (size_t i = 0; i < words.size(); ++i) {
    prefix_[i + 1] = prefix_[i] * kBase + words[i];
    power_[i + 1] = power_[i] * kBase;
  }
}

}  // namespace ostro::corpus_check
