#include "ostro/tokenizer/sentencepiece/byte_trie.h"

#include <algorithm>
#include <utility>

namespace ostro::tokenizer {

void ByteTrie::add_edge(uint64_t key, uint32_t node) {
  if (2 * values_.size() >= edges_.size()) {
    std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(std::max<size_t>(64, edges_.size() * 2)));
    mask_ = edges_.size() - 1;
    for (const Edge& edge : old) {
      if (edge.key == kEmpty) continue;
      size_t i = slot(edge.key);
      while (edges_[i].key != kEmpty) i = (i + 1) & mask_;
      edges_[i] = edge;
    }
  }
  size_t i = slot(key);
  while (edges_[i].key != kEmpty) i = (i + 1) & mask_;
  edges_[i] = {key, node};
}

void ByteTrie::insert(std::string_view key, uint32_t value) {
  uint32_t node = kRoot;
  for (const char byte : key) {
    uint32_t next = step(node, byte);
    if (next == kNone) {
      next = static_cast<uint32_t>(values_.size());
      add_edge(edge_key(node, byte), next);
      values_.push_back(kNone);
    }
    node = next;
  }
  values_[node] = value;
}

uint32_t ByteTrie::find(std::string_view key) const {
  uint32_t node = kRoot;
  for (const char byte : key) {
    node = step(node, byte);
    if (node == kNone) return kNone;
  }
  return values_[node];
}

ByteTrie::Match ByteTrie::longest(std::string_view text, size_t i) const {
  Match match{i, kNone};
  uint32_t node = kRoot;
  for (size_t end = i; end < text.size();) {
    node = step(node, text[end]);
    if (node == kNone) break;
    ++end;
    if (values_[node] != kNone) match = {end, values_[node]};
  }
  return match;
}

}  // namespace ostro::tokenizer
