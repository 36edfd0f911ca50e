#include "ostro/tokenizer/bpe.h"

#include <doctest/doctest.h>

#include <random>

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
    MergeTable::Merge merge;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = model.merges.find(ids[i], ids[i + 1]);
      if (found.rank < merge.rank) best = i, merge = found;
    }
    if (best == ids.size()) return ids;
    ids[best] = merge.result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Random merges over the letters a to d; token 4 + k is made by merge k. Byte "e" has no token.
BpeModel random_model(std::mt19937& rng, uint32_t merges) {
  BpeModel model;
  model.byte_ids.fill(kNoToken);
  for (uint32_t i = 0; i < 4; ++i) model.byte_ids['a' + i] = i;
  model.merges = MergeTable(merges);
  for (uint32_t k = 0; k < merges; ++k) {
    const uint32_t left = static_cast<uint32_t>(rng() % (4 + k)),
                   right = static_cast<uint32_t>(rng() % (4 + k));
    model.merges.insert(left, right, {k, 4 + k});
  }
  return model;
}

TEST_CASE("short and long pieces follow the definition") {
  std::mt19937 rng(1);
  for (int round = 0; round < 300; ++round) {
    const BpeModel model = random_model(rng, 30);
    for (const size_t length : {1, 2, 3, 10, 63, 64, 65, 66, 200, 400}) {
      std::string piece;
      for (size_t i = 0; i < length; ++i)
        piece += static_cast<char>('a' + (rng() % 40 == 0 ? 4 : rng() % (1 + rng() % 4)));
      std::vector<uint32_t> ids;
      model.encode(piece, ids);
      REQUIRE(ids == reference(model, piece));
    }
  }
}

TEST_CASE("a megabyte of one letter is not quadratic") {
  BpeModel model;
  model.byte_ids.fill(kNoToken);
  model.byte_ids['a'] = 0;
  model.merges = MergeTable(10);
  for (uint32_t k = 0; k < 10; ++k) model.merges.insert(k, k, {k, k + 1});
  std::vector<uint32_t> ids;
  model.encode(std::string(size_t{1} << 20, 'a'), ids);
  CHECK(ids == std::vector<uint32_t>(1024, 10));
}

TEST_CASE("ignore_merges looks the whole piece up first") {
  BpeModel model;
  model.byte_ids.fill(kNoToken);
  model.byte_ids['a'] = 0;
  model.whole = {{"aaa", 7}};
  std::vector<uint32_t> ids;
  model.encode("aaa", ids);
  model.ignore_merges = true;
  model.encode("aaa", ids);
  model.encode("aa", ids);
  CHECK(ids == std::vector<uint32_t>{0, 0, 0, 7, 0, 0});
}

}  // namespace
}  // namespace ostro::tokenizer
