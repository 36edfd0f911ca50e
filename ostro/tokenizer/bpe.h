// Byte-pair encoding of one piece: repeatedly joins the adjacent pair with the lowest merge rank, the
// leftmost of equals, until no pair has a merge.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ostro::tokenizer {

inline constexpr uint32_t kNoToken = 0xFFFFFFFF;

// Merges by pair of token ids: an open-addressing table, at most half full.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = kNoToken;  // kNoToken: this pair has no merge
    uint32_t result = kNoToken;
  };

  // Room for `count` merges.
  explicit MergeTable(size_t count = 0);

  // Sets the merge of a pair; a later one replaces an earlier.
  void insert(uint32_t left, uint32_t right, Merge merge);

  Merge find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == key) return entries_[i].merge;
      if (entries_[i].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Entry {
    uint64_t key = kEmpty;
    Merge merge;
  };
  size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 20) & mask_; }

  std::vector<Entry> entries_;
  size_t mask_ = 0;
};

// The model of a byte-level tokenizer; immutable after it is built, so threads may share it.
class BpeModel {
 public:
  std::array<uint32_t, 256>
      byte_ids{};  // token of each byte, kNoToken when the vocabulary lacks it (such bytes vanish)
  MergeTable merges;
  bool ignore_merges = false;                       // first look the whole piece up in `whole`
  std::unordered_map<std::string, uint32_t> whole;  // token by its bytes; filled only with ignore_merges

  // Appends the token ids of a piece. Linear for short pieces, n log n for long ones.
  void encode(std::string_view piece, std::vector<uint32_t>& out) const;

 private:
  void encode_short(std::string_view piece, std::vector<uint32_t>& out) const;
  void encode_long(std::string_view piece, std::vector<uint32_t>& out) const;
};

}  // namespace ostro::tokenizer
