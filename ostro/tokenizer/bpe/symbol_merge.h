// SymbolMerge: BPE over a row of symbols. Pairs may share a rank, as in SentencePiece; of equal ranks the
// leftmost pair goes first. (bpe.h is the version for bytes, where every pair has its own rank.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"
#include "ostro/tokenizer/bpe/window_merge.h"

namespace ostro::tokenizer {

// Working memory of one thread.
class SymbolMerge {
 public:
  // Merges pairs in the row until no pair has a merge, lowest rank first, and appends the tokens.
  void run(const MergeTable& pairs, std::span<const uint32_t> row, std::vector<uint32_t>& out);

  // Merges a whole row of n symbols at once, without windows. Time n log n, memory 32 n bytes.
  void run_whole(const MergeTable& pairs, std::span<const uint32_t> row, MergedRow& out);

 private:
  struct Node {
    uint32_t symbol, previous, next;
    MergeTable::Found join;  // merge with the next node
  };
  void look_up(const MergeTable& pairs, uint32_t node);

  WindowMerge windows_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> queue_;  // a heap of rank << 32 | node; stale entries are skipped
};

}  // namespace ostro::tokenizer
