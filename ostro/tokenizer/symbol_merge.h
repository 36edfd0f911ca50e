// Byte-pair encoding of a row of symbols, where pairs may share a rank, as they do in SentencePiece: of equal
// ranks the leftmost pair goes first. (bpe.h is the form for bytes, where every pair has a rank of its own.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::tokenizer {

inline constexpr uint32_t kNoSymbol = 0xFFFFFFFF;

// Which pairs of symbols join, in which order, to what.
class SymbolPairs {
 public:
  struct Join {
    uint32_t rank = kNoSymbol;  // kNoSymbol: the pair does not join
    uint32_t result = kNoSymbol;
  };

  // Room for `count` pairs.
  explicit SymbolPairs(size_t count = 0);

  // Sets what a pair does; a later call replaces an earlier.
  void insert(uint32_t left, uint32_t right, Join join);

  Join find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == key) return entries_[i].join;
      if (entries_[i].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Entry {
    uint64_t key = kEmpty;
    Join join;
  };
  size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 20) & mask_; }

  std::vector<Entry> entries_;  // open addressing, at most half full
  size_t mask_ = 0;
};

// The working memory of one thread. A row of n symbols takes n log n time and 32 n bytes.
class SymbolMerge {
 public:
  // Joins pairs in the row, lowest rank first, the leftmost of equals, until no pair joins. When `starts` is
  // given,
  // (*starts)[i] says where the i-th symbol begins; it is kept in step.
  void run(const SymbolPairs& pairs, std::vector<uint32_t>& row, std::vector<uint32_t>* starts = nullptr);

 private:
  struct Node {
    uint32_t symbol, previous, next;
    SymbolPairs::Join join;  // with the next node
  };
  void run_short(const SymbolPairs& pairs, std::vector<uint32_t>& row, std::vector<uint32_t>* starts);
  void run_long(const SymbolPairs& pairs, std::vector<uint32_t>& row, std::vector<uint32_t>* starts);
  void look_up(const SymbolPairs& pairs, uint32_t node);

  std::vector<Node> nodes_;
  std::vector<uint64_t>
      queue_;  // a heap of rank << 32 | node; entries whose node has changed are passed over
};

}  // namespace ostro::tokenizer
