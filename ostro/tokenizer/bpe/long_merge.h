// LongMerge: BPE merges of a long row of ids in linear time. There is one queue of positions per rank; the
// queue of the lowest rank is processed first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"
#include "ostro/tokenizer/bpe/window_merge.h"

namespace ostro::tokenizer {

// A merge: `left` followed by `right` becomes `result`.
struct Merge {
  uint32_t left, right, result;
};

// The merges of a BpeModel by rank. Every merge has its own rank.
struct MergeOrder {
  std::vector<Merge> by_rank;
  // True if every merge has a higher rank than the merges that produce its two parts. Then a merge never
  // creates a pair of lower rank. Trained vocabularies are like this, unless two merges produce the same
  // token.
  bool ascending = true;
};

// Working memory of one thread, kept between calls. A row of n ids needs about 40 n bytes.
class LongMerge {
 public:
  // Merges pairs of ids until no pair has a merge. The lowest rank goes first; of equal ranks the leftmost.
  void run(const MergeTable& table, const MergeOrder& order, std::span<const uint32_t> row, MergedRow& out);

 private:
  struct Node {
    uint32_t id, previous, next;
    // rank of the pair with the next node; kNoToken: no merge, or this node was merged into another
    uint32_t rank;
  };
  struct Waiting {
    uint32_t node, next;
  };
  struct Queue {
    uint32_t first, last;  // indices into waiting_; nodes of a queue ascend unless `unsorted_` is set
  };
  void start(std::span<const uint32_t> row, size_t ranks);
  void look_up(const MergeTable& table, uint32_t node);
  uint32_t lowest_rank() const;
  void sort_queue(uint32_t rank);
  void work_off(const MergeTable& table, uint32_t rank, const Merge& merge);
  void join(const MergeTable& table, uint32_t node, uint32_t result);

  std::vector<Node> nodes_;
  std::vector<Waiting> waiting_;
  std::vector<Queue> queues_;         // by rank; all are empty between calls
  std::vector<uint8_t> unsorted_;     // by rank
  std::vector<uint64_t> busy_;        // one bit per rank: set if its queue is not empty
  std::vector<uint64_t> busy_words_;  // one bit per word of busy_: set if the word is not 0
  std::vector<uint32_t> sorting_;
  uint32_t lowest_new_ = kNoToken;  // lowest rank that was queued since the current queue was chosen
};

}  // namespace ostro::tokenizer
