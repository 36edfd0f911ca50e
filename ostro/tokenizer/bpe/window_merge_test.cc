#include "ostro/tokenizer/bpe/window_merge.h"

#include <doctest/doctest.h>

#include <random>

#include "ostro/tokenizer/bpe/symbol_merge.h"

namespace ostro::tokenizer {
namespace {

// Random joins of letters and of earlier results, some of a shared rank; every fourth doubles a run of
// letter 0.
MergeTable random_joins(std::mt19937& rng, uint32_t letters, uint32_t count) {
  MergeTable table(count);
  uint32_t run = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t tokens = letters + i, rank = rng() % 3 == 0 ? i / 2 : i;
    if (i % 4 == 0) {
      table.insert(run, run, {rank, tokens});
      run = tokens;
    } else {
      table.insert(static_cast<uint32_t>(rng() % tokens), static_cast<uint32_t>(rng() % tokens),
                   {rank, tokens});
    }
  }
  return table;
}

TEST_CASE("a row merged in windows has the tokens of the row merged at once") {
  std::mt19937 rng(11);
  int longer = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t letters = 1 + rng() % 5;
    const MergeTable table = random_joins(rng, letters, 1 + rng() % 60);
    std::vector<uint32_t> row(65 + rng() % 3000);
    // Stretches of one letter, where windows have no token in common, between random ones.
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = i % 700 < 300 ? static_cast<uint32_t>(rng() % letters) : 0;
    MergedRow whole;
    SymbolMerge merge;
    merge.run_whole(table, row, whole);
    std::vector<uint32_t> ids = {7};
    WindowMerge windows;
    const auto merge_long = [&](std::span<const uint32_t> window, MergedRow& merged) {
      ++longer;
      merge.run_whole(table, window, merged);
    };
    windows.run(table, row, merge_long, ids);
    whole.ids.insert(whole.ids.begin(), 7);
    REQUIRE(ids == whole.ids);
  }
  CHECK(longer > 0);
}

TEST_CASE("a run of one letter of any length has the tokens of the row merged at once" *
          doctest::test_suite("one-thread")) {
  std::mt19937 rng(12);
  int shortened = 0;
  for (int round = 0; round < 400; ++round) {
    const MergeTable table = random_joins(rng, 1, 1 + rng() % 40);
    const std::vector<uint32_t> row(1000 + rng() % 9000, 0);
    MergedRow whole;
    SymbolMerge merge;
    merge.run_whole(table, row, whole);
    std::vector<uint32_t> ids;
    WindowMerge windows;
    size_t longest = 0;
    const auto merge_long = [&](std::span<const uint32_t> window, MergedRow& merged) {
      longest = std::max(longest, window.size());
      merge.run_whole(table, window, merged);
    };
    windows.run(table, row, merge_long, ids);
    REQUIRE(ids == whole.ids);
    shortened += longest < row.size() / 2 + 512;
  }
  CHECK(shortened > 200);
}

TEST_CASE("windows grow where tokens are long: doubled letters, up to 4096 in a token") {
  MergeTable table(12);
  for (uint32_t k = 0; k < 12; ++k) table.insert(k, k, {k, k + 1});
  SymbolMerge merge;
  std::vector<uint32_t> ids;
  merge.run(table, std::vector<uint32_t>(3 * 4096 + 5, 0), ids);
  CHECK(ids == std::vector<uint32_t>{12, 12, 12, 2, 0});
}

}  // namespace
}  // namespace ostro::tokenizer
