#include "ostro/tokenizer/sentencepiece/unigram_path.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace ostro::tokenizer {
namespace {

struct Steps final : UnigramSink {
  void take(size_t begin, size_t end, uint32_t id) override {
    CHECK(begin == place);
    place = end;
    ids.push_back(id);
  }
  size_t place = 0;
  std::vector<uint32_t> ids;
};

// The definition: the best sum over all prefixes at once, whole tables in memory.
std::vector<uint32_t> slow(const UnigramTokens& tokens, const std::vector<std::string>& texts,
                           std::string_view text) {
  struct Best {
    double score = 0;
    size_t begin = 0;
    uint32_t id = 0;
    bool reached = false;
  };
  std::vector<Best> best(text.size() + 1);
  const auto offer = [&](size_t begin, size_t end, double score, uint32_t id) {
    const double sum = best[begin].score + score;
    if (!best[end].reached || sum > best[end].score) best[end] = {sum, begin, id, true};
  };
  for (size_t begin = 0; begin < text.size(); ++begin) {
    bool single = false;
    for (size_t end = begin + 1; end <= text.size(); ++end) {
      for (uint32_t id = 1; id < texts.size(); ++id) {
        if (text.substr(begin, end - begin) != texts[id]) continue;
        offer(begin, end, tokens.scores[id], id);
        single |= end == begin + 1;
      }
    }
    if (!single) offer(begin, begin + 1, tokens.unknown_score, tokens.unknown);
  }
  std::vector<uint32_t> ids;
  for (size_t at = text.size(); at > 0; at = best[at].begin) ids.insert(ids.begin(), best[at].id);
  return ids;
}

UnigramTokens random_tokens(std::mt19937& rng, std::vector<std::string>& texts) {
  UnigramTokens tokens;
  texts = {"<unk>"};
  tokens.scores = {0};
  tokens.unknown_score = -20;
  for (int i = 0; i < 25; ++i) {
    std::string text(1 + rng() % 5, 'a');
    for (char& c : text) c = static_cast<char>('a' + rng() % 3);
    if (tokens.trie.find(text) != ByteTrie::kNone) continue;
    tokens.trie.insert(text, static_cast<uint32_t>(texts.size()));
    texts.push_back(text);
    tokens.scores.push_back(-static_cast<double>(rng() % 8));  // many ties
  }
  return tokens;
}

TEST_CASE("the best path is that of the definition") {
  std::mt19937 rng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> texts;
    const UnigramTokens tokens = random_tokens(rng, texts);
    std::string text(1 + rng() % 60, 'a');
    for (char& c : text) c = static_cast<char>('a' + rng() % 4);  // 'd' is in no token
    Steps steps;
    UnigramPath path;
    path.run(tokens, text, steps);
    CHECK(steps.ids == slow(tokens, texts, text));
  }
}

TEST_CASE("a long stretch without a meeting place is given out in parts") {
  UnigramTokens tokens;
  tokens.scores = {0, -1.0, -1.9, -2.8};
  tokens.unknown_score = -20;
  tokens.trie.insert("a", 1);
  tokens.trie.insert("aa", 2);
  tokens.trie.insert("aaa", 3);
  Steps steps;
  UnigramPath path;
  path.run(tokens, std::string(1'000'000, 'a'), steps);
  CHECK(steps.place == 1'000'000);
  Steps few;
  path.run(tokens, std::string(999, 'a'), few);
  CHECK(few.ids == std::vector<uint32_t>(333, 3));
  CHECK(std::vector<uint32_t>(steps.ids.end() - 300'000, steps.ids.end()) ==
        std::vector<uint32_t>(300'000, 3));
}

}  // namespace
}  // namespace ostro::tokenizer
