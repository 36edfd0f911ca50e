// BPE merges of long rows in linear time: places wait in one queue per rank, the lowest rank goes first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"
#include "ostro/tokenizer/bpe/window_merge.h"

namespace ostro::tokenizer {

// A merge: where `left` stands before `right`, both become `result`.
struct Merge {
  uint32_t left, right, result;
};

// What BpeModel knows of its merges beyond the table, in which each has a rank of its own.
struct MergeOrder {
  std::vector<Merge> by_rank;
  // Every merge comes after all merges that make one of its parts, so no merge brings up a pair of lower
  // rank. Trained vocabularies are so, except that two merges may make the same token.
  bool ascending = true;
};

// The working memory of one thread, kept between calls. A row of n ids takes about 40 n bytes.
class LongMerge {
 public:
  // Joins pairs of ids, lowest rank first, the leftmost of equals, until no pair has a merge.
  void run(const MergeTable& table, const MergeOrder& order, std::span<const uint32_t> row, MergedRow& out);

 private:
  struct Node {
    uint32_t id, previous, next;
    uint32_t rank;  // of the pair with the next node; kNoToken: no merge, or the node has been joined
  };
  struct Waiting {
    uint32_t node, next;
  };
  struct Queue {
    uint32_t first, last;  // in waiting_; a queue is ascending in nodes unless `unsorted` says otherwise
  };
  void start(std::span<const uint32_t> row, size_t ranks);
  void look_up(const MergeTable& table, uint32_t node);
  uint32_t lowest_rank() const;
  void sort_queue(uint32_t rank);
  void work_off(const MergeTable& table, uint32_t rank, const Merge& merge);
  void join(const MergeTable& table, uint32_t node, uint32_t result);

  std::vector<Node> nodes_;
  std::vector<Waiting> waiting_;
  std::vector<Queue> queues_;         // by rank, all empty between calls
  std::vector<uint8_t> unsorted_;     // by rank
  std::vector<uint64_t> busy_;        // a bit per rank whose queue is not empty
  std::vector<uint64_t> busy_words_;  // a bit per word of busy_
  std::vector<uint32_t> sorting_;
  uint32_t lowest_new_ = kNoToken;  // the lowest rank that began to wait since the present queue was chosen
};

}  // namespace ostro::tokenizer
