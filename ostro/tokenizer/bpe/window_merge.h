// BPE merges of a long row in windows that stay in the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"

namespace ostro::tokenizer {

// Tokens and the places in the row where they begin.
struct MergedRow {
  std::vector<uint32_t> ids, starts;
};

// BPE always carries out the smallest of the joins that are possible at the time, by rank, then place, and a
// join only looks at two neighbours. So in a row of tokens each of which is what BPE makes of its own part,
// the first join across a border between two of them happens in the whole row if and only if it happens when
// these two stand alone: a row is the BPE of its text if and only if every two neighbours are that of theirs.
// Hence two overlapping windows with a token in common, of the same place, are put together there: up to it
// neighbours are those of the one, from it on those of the other. Where windows have none in common
// ("aaaa...", with long tokens), a longer one is tried, in the end the whole row.
//
// By the same rule a token that stands twice side by side may stand there any number of times: so a long row
// of one id has the tokens of a shorter one, with more of the first.
//
// The working memory of one thread, 8 to 16 bytes for each id of the longest row.
class WindowMerge {
 public:
  // Merges a row of more than kShortRow ids, all of it.
  using MergeLong = std::function<void(std::span<const uint32_t> row, MergedRow& out)>;

  // Joins pairs in a row, lowest rank first, the leftmost of equals, until no pair joins, and appends its
  // tokens.
  void run(const MergeTable& table, std::span<const uint32_t> row, const MergeLong& merge_long,
           std::vector<uint32_t>& out);

 private:
  bool merge_run(const MergeTable& table, std::span<const uint32_t> row, const MergeLong& merge_long,
                 std::vector<uint32_t>& out);
  bool extend(const MergeTable& table, std::span<const uint32_t> row, size_t length,
              const MergeLong& merge_long);
  void merge_window(const MergeTable& table, std::span<const uint32_t> window, const MergeLong& merge_long);

  MergedRow done_;    // the BPE of the row's first end_ ids; count_ tokens
  MergedRow window_;  // starts count from the window's begin
  size_t count_ = 0, end_ = 0;
};

}  // namespace ostro::tokenizer
