// The merges of a BPE model by pair of token ids: an open-addressing table, at most half full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::tokenizer {

inline constexpr uint32_t kNoToken = 0xFFFFFFFF;

// A merge: where `left` stands before `right`, both become `result`.
struct Merge {
  uint32_t left, right, result;
};

class MergeTable {
 public:
  struct Found {
    uint32_t rank = kNoToken;  // kNoToken: this pair has no merge
    uint32_t result = kNoToken;
  };

  // The merges in the order of their ranks, fewer than 2^26 - 1; of two with the same pair the later counts.
  explicit MergeTable(const std::vector<Merge>& by_rank = {});

  Found find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == key) return entries_[i].found;
      if (entries_[i].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Entry {
    uint64_t key = kEmpty;
    Found found;
  };
  size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 20) & mask_; }

  std::vector<Entry> entries_;
  size_t mask_ = 0;
};

}  // namespace ostro::tokenizer
