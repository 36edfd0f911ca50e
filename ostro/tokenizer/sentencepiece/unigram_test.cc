#include "ostro/tokenizer/sentencepiece/unigram.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace ostro::tokenizer {
namespace {

// Words of a few letters, whose scores make many ties and near ties.
Unigram::Parts word_parts(std::mt19937& rng) {
  Unigram::Parts parts;
  parts.hugging_face = false;
  parts.tokens.single_precision = true;
  parts.tokens.scores = {0};
  parts.tokens.unknown_score = -30;
  const auto add = [&](const std::string& text) {
    if (parts.tokens.trie.find(text) != ByteTrie::kNone) return;
    parts.tokens.trie.insert(text, static_cast<uint32_t>(parts.tokens.scores.size()));
    const double tie = -static_cast<double>(1 + rng() % 6), off = static_cast<double>(rng() % 3) * 1e-4;
    parts.tokens.scores.push_back(static_cast<float>(tie / 3 + off));
  };
  add("\u2581");
  for (int i = 0; i < 40; ++i) {
    std::string text = rng() % 3 == 0 ? "\u2581" : "";
    for (size_t letters = 1 + rng() % 4; letters > 0; --letters) text += static_cast<char>('a' + rng() % 3);
    add(text);
  }
  return parts;
}

}  // namespace

TEST_CASE("remembered words have the ids of the whole text, near ties included" *
          doctest::test_suite("one-thread")) {
  std::mt19937 rng(11);
  for (int round = 0; round < 40; ++round) {
    Unigram::Parts parts = word_parts(rng);
    const Unigram whole(parts);
    parts.words = true;
    const Unigram words(std::move(parts));
    ModelScratch plain, remembering;
    remembering.memory.enable();
    std::vector<std::string> known;
    for (int i = 0; i < 30; ++i) {
      std::string& word = known.emplace_back("\u2581");
      for (size_t letters = rng() % 12; letters > 0; --letters)
        word += static_cast<char>('a' + rng() % (round % 4 == 0 ? 4 : 3));  // d is in no token
    }
    // The longer the text, the coarser its sums.
    for (const size_t length : {3, 100, 30'000}) {
      std::string text;
      for (size_t i = 0; i < length; ++i) text += known[rng() % known.size()];
      std::vector<uint32_t> expected, ids;
      whole.encode(text, plain, expected);
      words.encode(text, remembering, ids);
      CHECK(ids == expected);
    }
  }
}

}  // namespace ostro::tokenizer
