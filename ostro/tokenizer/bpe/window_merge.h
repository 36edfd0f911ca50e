// WindowMerge: BPE merges of a long row of ids, in windows that fit into the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"

namespace ostro::tokenizer {

// Tokens, and the positions in the row where they begin.
struct MergedRow {
  std::vector<uint32_t> ids, starts;
};

// Merges a long row window by window and still gets the exact result of BPE.
//
// Why this is exact: BPE always does the merge with the lowest (rank, position), and a merge depends only on
// two neighbours. Take a sequence of tokens where each one is the BPE of its own part of the row. This
// sequence is the BPE of the row if and only if each pair of neighbours is the BPE of its own two parts. So
// two overlapping windows that share a token at the same position can be joined there: before it, neighbours
// come from the first window, after it from the second.
//
// If the windows share no token ("aaaa..." with long tokens), a longer window is tried, in the end the whole
// row.
//
// This rule also shows: if a token may stand twice side by side, it may stand any number of times. So the
// tokens of a long run of one id are those of a shorter run, with the first token repeated more often.
//
// An object is working memory for one thread: 8 to 16 bytes per id of the longest row.
class WindowMerge {
 public:
  // Merges a whole row of more than kShortRow ids.
  using MergeLong = std::function<void(std::span<const uint32_t> row, MergedRow& out)>;

  // Merges the row until no pair has a merge, lowest rank first, of equal ranks the leftmost. Appends the
  // tokens.
  void run(const MergeTable& table, std::span<const uint32_t> row, const MergeLong& merge_long,
           std::vector<uint32_t>& out);

 private:
  bool merge_run(const MergeTable& table, std::span<const uint32_t> row, const MergeLong& merge_long,
                 std::vector<uint32_t>& out);
  bool extend(const MergeTable& table, std::span<const uint32_t> row, size_t length,
              const MergeLong& merge_long);
  void merge_window(const MergeTable& table, std::span<const uint32_t> window, const MergeLong& merge_long);

  MergedRow done_;    // the BPE of the first end_ ids of the row: count_ tokens
  MergedRow window_;  // positions are relative to the window's begin
  size_t count_ = 0, end_ = 0;
};

}  // namespace ostro::tokenizer
