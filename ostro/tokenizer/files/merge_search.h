// MergeSearch: the core of BPE training. It finds the pair to merge next and updates the counts after each
// merge.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ostro::tokenizer {

using TokenPair = std::pair<uint32_t, uint32_t>;

// All distinct pieces as rows of tokens, with exact counts of adjacent pairs and the positions of each pair.
// The time of a merge is proportional to the pair's occurrences, not to the text. Not thread-safe.
class MergeSearch {
 public:
  // Adds a piece that occurs `count` times. `ids` are its tokens (not empty).
  void add_piece(const std::vector<uint32_t>& ids, uint64_t count);

  // Counts the pairs; call once, after the last piece.
  void start();

  // The most frequent pair; of equally frequent ones the smallest. Nothing if no pair occurs at least
  // min_count times (and at least once).
  std::optional<TokenPair> best(uint64_t min_count);

  // Replaces every occurrence of the pair, from left to right, by the token `merged`.
  void merge(TokenPair pair, uint32_t merged);

 private:
  struct Symbol {
    uint32_t id;  // kDead after it was merged into the symbol before it
    uint32_t previous, next;
    uint32_t piece;
  };
  struct PairInfo {
    uint64_t count = 0;
    std::vector<uint32_t> places;  // positions of the left symbol; some may be stale
    bool grew = false;             // its count grew in the current merge, so it needs a new queue entry
  };
  struct Candidate {
    uint64_t count;
    TokenPair pair;
    bool operator<(const Candidate& other) const {  // the queue's top is the largest
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  PairInfo& info(TokenPair pair);
  void add_pair(TokenPair pair, uint64_t count, uint32_t place);
  void remove_pair(TokenPair pair, uint64_t count);

  std::vector<Symbol> symbols_;
  std::vector<uint64_t> piece_counts_;
  std::unordered_map<uint64_t, PairInfo> pairs_;
  std::vector<TokenPair> grown_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace ostro::tokenizer
