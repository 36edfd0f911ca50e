#include "ostro/tokenizer/sentencepiece/char_bpe.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace ostro::tokenizer {
namespace {

// The definition, slowly: the lowest rank, of equals the leftmost, again and again.
std::vector<uint32_t> slow(const CharBpe::Parts& parts, std::string_view text) {
  std::vector<uint32_t> row;
  for (const char c : text) row.push_back(parts.characters.find(static_cast<unsigned char>(c)));
  while (true) {
    const CharBpe::Merge* best = nullptr;
    size_t place = 0;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      for (const auto& m : parts.merges) {
        if (m.left == row[i] && m.right == row[i + 1] && (best == nullptr || m.rank < best->rank))
          best = &m, place = i;
      }
    }
    if (best == nullptr) return row;
    row[place] = best->result;
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// A vocabulary over a few letters where every way to cut a token is a merge of the token's rank, as in
// SentencePiece. `ends_words`: no token has an a behind another letter.
CharBpe::Parts random_parts(std::mt19937& rng, uint32_t letters, uint32_t size, bool shared_ranks,
                            bool ends_words = false) {
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < letters; ++i) tokens.emplace_back(1, static_cast<char>('a' + i));
  while (tokens.size() < size) {
    std::string next = tokens[rng() % tokens.size()] + tokens[rng() % tokens.size()];
    const size_t last = next.rfind('a');
    if (ends_words && last != std::string::npos && next.find_first_not_of('a') < last) continue;
    if (next.size() < 12 && std::find(tokens.begin(), tokens.end(), next) == tokens.end())
      tokens.push_back(next);
  }
  CharBpe::Parts parts;
  const auto id_of = [&](std::string_view t) {
    return static_cast<uint32_t>(std::find(tokens.begin(), tokens.end(), t) - tokens.begin());
  };
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    if (id < letters) parts.characters.insert(static_cast<unsigned char>(tokens[id][0]), id);
    for (size_t cut = 1; cut < tokens[id].size(); ++cut) {
      const uint32_t left = id_of(tokens[id].substr(0, cut)), right = id_of(tokens[id].substr(cut));
      const auto rank = shared_ranks ? id : static_cast<uint32_t>(parts.merges.size());
      if (left < size && right < size) parts.merges.push_back({left, right, rank, id});
    }
  }
  return parts;
}

std::string random_letters(std::mt19937& rng, uint32_t letters, size_t length) {
  std::string text;
  while (text.size() < length) {
    const char c = static_cast<char>('a' + rng() % letters);
    text.append(rng() % 8 == 0 ? 1 + rng() % 30 : 1, c);
  }
  return text;
}

TEST_CASE("cutting text into units changes no id" * doctest::test_suite("one-thread")) {
  std::mt19937 rng(5);
  for (int round = 0; round < 60; ++round) {
    const uint32_t letters = 2 + rng() % 5;
    const auto parts = random_parts(rng, letters, letters + 4 + rng() % 30, round % 2 == 0);
    const CharBpe model(parts);
    ModelScratch scratch;
    if (round % 3 == 0) scratch.memory.enable();
    for (int text = 0; text < 20; ++text) {
      const std::string input = random_letters(rng, letters, 1 + rng() % 120);
      std::vector<uint32_t> ids;
      model.encode(input, scratch, ids);
      CHECK(ids == slow(parts, input));
    }
  }
}

TEST_CASE("windows of a long unit give the ids of the whole" * doctest::test_suite("one-thread")) {
  std::mt19937 rng(6);
  auto parts = random_parts(rng, 2, 24, true);
  const CharBpe model(parts);
  ModelScratch scratch;
  for (const std::string& text : {std::string(3 << 20, 'a'), random_letters(rng, 2, 3 << 20)}) {
    std::vector<uint32_t> ids;
    model.encode(text, scratch, ids);
    // The whole at once: the row of letters through the merge itself.
    MergeTable pairs(parts.merges.size());
    for (const auto& m : parts.merges) pairs.insert(m.left, m.right, {m.rank, m.result});
    std::vector<uint32_t> row;
    for (const char c : text) row.push_back(parts.characters.find(static_cast<unsigned char>(c)));
    MergedRow whole;
    SymbolMerge().run_whole(pairs, row, whole);
    CHECK(ids == whole.ids);
  }
}

// Letter a is U+2581.
TEST_CASE("cutting text into words changes no id" * doctest::test_suite("one-thread")) {
  std::mt19937 rng(7);
  const auto spaced = [](std::string_view letters) {
    std::string out;
    for (const char c : letters) c == 'a' ? out += "\u2581" : out += c;
    return out;
  };
  for (int round = 0; round < 60; ++round) {
    auto parts = random_parts(rng, 4, 40, round % 2 == 0, round % 3 != 0);
    parts.unknown = 40;
    auto model_parts = parts;
    model_parts.characters.insert('a', kNoToken);
    model_parts.characters.insert(0x2581, 0);
    const CharBpe model(model_parts);
    ModelScratch scratch;
    scratch.memory.enable();
    for (int text = 0; text < 20; ++text) {
      const std::string input = random_letters(rng, 4, 1 + rng() % 120);
      std::vector<uint32_t> ids;
      model.encode(spaced(input), scratch, ids);
      CHECK(ids == slow(parts, input));
    }
  }
}

}  // namespace
}  // namespace ostro::tokenizer
