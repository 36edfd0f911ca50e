#include "ostro/tokenizer/bpe/bpe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "ostro/tokenizer/bpe/piece_encoder.h"

namespace ostro::tokenizer {
namespace {

// The definition, one merge at a time.
std::vector<uint32_t> reference(const BpeModel& model, std::string_view piece) {
  std::vector<uint32_t> ids;
  for (const char c : piece) {
    const uint32_t id = model.byte_ids[static_cast<uint8_t>(c)];
    if (id != kNoToken) ids.push_back(id);
  }
  for (;;) {
    size_t best = ids.size();
    MergeTable::Found merge;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = model.merges().find(ids[i], ids[i + 1]);
      if (found.rank < merge.rank) best = i, merge = found;
    }
    if (best == ids.size()) return ids;
    ids[best] = merge.result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<uint32_t> encoded(const BpeModel& model, std::string_view piece) {
  BpeScratch scratch;
  std::vector<uint32_t> ids;
  model.encode(piece, scratch, ids);
  return ids;
}

// Random merges over the letters a to d, whose tokens are texts, so that several merges can make one token.
// In `shuffled` order a merge can make a part of an earlier one. Byte "e" has no token.
BpeModel random_model(std::mt19937& rng, uint32_t count, bool shuffled) {
  BpeModel model;
  std::vector<std::string> texts = {"a", "b", "c", "d"};
  std::map<std::string, uint32_t> ids;
  for (uint32_t i = 0; i < 4; ++i) ids[texts[i]] = model.byte_ids['a' + i] = i;
  std::vector<Merge> merges;
  while (merges.size() < count) {
    const auto left = static_cast<uint32_t>(rng() % texts.size()),
               right = static_cast<uint32_t>(rng() % texts.size());
    const std::string joined = texts[left] + texts[right];
    const auto [it, is_new] = ids.emplace(joined, texts.size());
    if (is_new) texts.push_back(joined);
    merges.push_back({left, right, it->second});
  }
  if (shuffled) std::shuffle(merges.begin(), merges.end(), rng);
  model.set_merges(std::move(merges));
  if (rng() % 2 == 0) model.set_whole_pieces(texts, false);
  return model;
}

TEST_CASE("short and long pieces follow the definition, in whatever order the merges are") {
  std::mt19937 rng(1);
  for (int round = 0; round < 400; ++round) {
    const BpeModel model = random_model(rng, 40, round % 2 == 0);
    for (const size_t length : {1, 2, 3, 10, 63, 64, 65, 66, 200, 400}) {
      std::string piece;
      for (size_t i = 0; i < length; ++i)
        piece += static_cast<char>('a' + (rng() % 40 == 0 ? 4 : rng() % (1 + rng() % 4)));
      REQUIRE(encoded(model, piece) == reference(model, piece));
    }
  }
}

TEST_CASE("a working memory serves models of different sizes one after another" *
          doctest::test_suite("one-thread")) {
  std::mt19937 rng(2);
  BpeScratch scratch;
  for (int round = 0; round < 20; ++round) {
    const BpeModel model = random_model(rng, 1 + rng() % 5000, round % 2 == 0);
    std::string piece;
    for (int i = 0; i < 300; ++i) piece += static_cast<char>('a' + rng() % 4);
    std::vector<uint32_t> ids;
    model.encode(piece, scratch, ids);
    REQUIRE(ids == reference(model, piece));
  }
}

TEST_CASE("a megabyte of one letter is not quadratic") {
  BpeModel model;
  model.byte_ids['a'] = 0;
  std::vector<Merge> merges;
  for (uint32_t k = 0; k < 10; ++k) merges.push_back({k, k, k + 1});
  model.set_merges(merges);
  CHECK(encoded(model, std::string(size_t{1} << 20, 'a')) == std::vector<uint32_t>(1024, 10));
}

TEST_CASE("whole pieces: with ignore_merges every token, otherwise what merges make") {
  BpeModel model;
  model.byte_ids['a'] = 0;
  std::vector<std::string> tokens(8);
  tokens[0] = "a";
  tokens[7] = "aaa";
  model.set_whole_pieces(tokens, false);
  CHECK(encoded(model, "aaa") == std::vector<uint32_t>{0, 0, 0});
  model.set_whole_pieces(tokens, true);
  CHECK(encoded(model, "aaa") == std::vector<uint32_t>{7});
  CHECK(encoded(model, "aa") == std::vector<uint32_t>{0, 0});
}

// Pieces of all lengths around the sizes of slots, met several times, with zero bytes and shared beginnings.
TEST_CASE("remembered pieces have the ids of computed ones") {
  std::mt19937 rng(3);
  BpeModel model = random_model(rng, 200, false);
  model.byte_ids[0] = 5000;
  PieceEncoder encoder(model);
  encoder.remember_pieces();
  std::vector<std::string> pieces;
  for (size_t length = 1; length < 140; ++length) {
    std::string piece(length, 'a');
    for (char& c : piece) c = "abcd\0ab"[rng() % 7];
    pieces.push_back(piece);
    piece.back() = '\0';
    pieces.push_back(piece);
  }
  for (int round = 0; round < 3; ++round) {
    for (const std::string& piece : pieces) {
      std::vector<uint32_t> ids;
      encoder.encode_piece(piece, ids);
      REQUIRE(ids == reference(model, piece));
    }
  }
  // Words of a text: one batch after another, up to its last byte.
  std::string text;
  std::vector<uint32_t> expected, ids;
  for (int i = 0; i < 5000; ++i) {
    std::string word(1, ' ');
    for (size_t n = 1 + rng() % (i % 50 == 0 ? 150 : 6); n > 0; --n)
      word += static_cast<char>('a' + rng() % 4);
    text += word;
    const auto part = reference(model, word);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (int round = 0; round < 2; ++round) {
    ids.clear();
    encoder.encode(Splitter::kGpt2, text, ids);
    REQUIRE(ids == expected);
  }
}

}  // namespace
}  // namespace ostro::tokenizer
