// ByteTrie: a trie over bytes with a value per key. It finds the tokens that begin at a position of the text.
// Does not change after the last insert(), so threads may then share it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ostro::tokenizer {

class ByteTrie {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kRoot = 0;

  // Sets the value of a key (not empty); a later one replaces an earlier.
  void insert(std::string_view key, uint32_t value);

  // The node after one more byte, or kNone.
  uint32_t step(uint32_t node, char byte) const {
    if (edges_.empty()) return kNone;
    const uint64_t key = edge_key(node, byte);
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (edges_[i].key == key) return edges_[i].node;
      if (edges_[i].key == kEmpty) return kNone;
    }
  }

  // The value of the key that ends at a node, or kNone.
  uint32_t value(uint32_t node) const { return values_[node]; }

  // The value of exactly this key, or kNone.
  uint32_t find(std::string_view key) const;

  // The end of the longest key that begins at i, and its value; {i, kNone} when there is none.
  struct Match {
    size_t end;
    uint32_t value;
  };
  Match longest(std::string_view text, size_t i) const;

  bool empty() const { return edges_.empty(); }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Edge {
    uint64_t key = kEmpty;
    uint32_t node = 0;
  };
  static uint64_t edge_key(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }
  size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 24) & mask_; }
  void add_edge(uint64_t key, uint32_t node);

  std::vector<uint32_t> values_ = {kNone};  // by node
  std::vector<Edge> edges_;                 // hash table with open addressing, at most half full
  size_t mask_ = 0;
};

}  // namespace ostro::tokenizer
