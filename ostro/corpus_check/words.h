// normalized_words, word_hashes: split a text into the words that checks compare: lower case, without
// punctuation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::corpus_check {

// A word is a run of letters, marks, digits and _, in lower case. In scripts without spaces between words
// (Han, Kana, Thai, Lao, Khmer, Myanmar) every character is a word. `text` must be valid UTF-8.
std::vector<std::string> normalized_words(std::string_view text);

// The 64-bit hashes of the same words, without making the strings.
std::vector<uint64_t> word_hashes(std::string_view text);

// A well-mixed value of 64 bits (the finalizer of splitmix64).
uint64_t mix64(uint64_t x);

// Rolling hashes: the hash of any run of words in constant time. Equal runs have equal hashes.
class StretchHashes {
 public:
  explicit StretchHashes(const std::vector<uint64_t>& words);
  // The hash of words [begin, begin + count).
  uint64_t of(size_t begin, size_t count) const {
    return mix64((prefix_[begin + count] - prefix_[begin] * power_[count]) ^ (count * 0x9E3779B97F4A7C15ull));
  }

 private:
  std::vector<uint64_t> prefix_, power_;
};

}  // namespace ostro::corpus_check
