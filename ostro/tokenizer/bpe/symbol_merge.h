// Byte-pair encoding of a row of symbols, where pairs may share a rank, as they do in SentencePiece: of equal
// ranks the leftmost pair goes first. (bpe.h is the form for bytes, where every pair has a rank of its own.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"
#include "ostro/tokenizer/bpe/window_merge.h"

namespace ostro::tokenizer {

// The working memory of one thread.
class SymbolMerge {
 public:
  // Joins pairs in the row, lowest rank first, the leftmost of equals, until no pair joins, and appends the
  // tokens.
  void run(const MergeTable& pairs, std::span<const uint32_t> row, std::vector<uint32_t>& out);

  // The same for all of a row at once, in n log n time and with 32 n bytes.
  void run_whole(const MergeTable& pairs, std::span<const uint32_t> row, MergedRow& out);

 private:
  struct Node {
    uint32_t symbol, previous, next;
    MergeTable::Found join;  // with the next node
  };
  void look_up(const MergeTable& pairs, uint32_t node);

  WindowMerge windows_;
  std::vector<Node> nodes_;
  std::vector<uint64_t>
      queue_;  // a heap of rank << 32 | node; entries whose node has changed are passed over
};

}  // namespace ostro::tokenizer
