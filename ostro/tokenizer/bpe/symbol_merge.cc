#include "ostro/tokenizer/bpe/symbol_merge.h"

#include <algorithm>
#include <functional>

#include "ostro/tokenizer/bpe/short_merge.h"

namespace ostro::tokenizer {
namespace {

constexpr uint32_t kNoNode = 0xFFFFFFFF;

}  // namespace

void SymbolMerge::run(const MergeTable& pairs, std::span<const uint32_t> row, std::vector<uint32_t>& out) {
  if (row.size() <= kShortRow) return append_merged(pairs, row, out);
  const auto merge_long = [&](std::span<const uint32_t> window, MergedRow& merged) {
    run_whole(pairs, window, merged);
  };
  windows_.run(pairs, row, merge_long, out);
}

void SymbolMerge::look_up(const MergeTable& pairs, uint32_t i) {
  Node& node = nodes_[i];
  node.join = node.next == kNoNode ? MergeTable::Found{} : pairs.find(node.symbol, nodes_[node.next].symbol);
  if (node.join.rank == kNoToken) return;
  queue_.push_back(uint64_t{node.join.rank} << 32 | i);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

// A linked list of symbols, and a heap of pairs by (rank, position). A merge writes its result into the left
// node, unlinks the right one, and looks up the two pairs beside it. Entries are not removed from the heap:
// an entry counts only if its node is alive and still has the entry's rank.
void SymbolMerge::run_whole(const MergeTable& pairs, std::span<const uint32_t> row, MergedRow& out) {
  const auto n = static_cast<uint32_t>(row.size());
  nodes_.resize(n);
  queue_.clear();
  for (uint32_t i = 0; i < n; ++i)
    nodes_[i] = {row[i], i - 1, i + 1 == n ? kNoNode : i + 1, {}};  // 0 - 1 is kNoNode
  for (uint32_t i = 0; i < n; ++i) look_up(pairs, i);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(queue_.back() >> 32), i = static_cast<uint32_t>(queue_.back());
    queue_.pop_back();
    Node& node = nodes_[i];
    if (node.symbol == kNoToken || node.join.rank != rank) continue;
    Node& joined = nodes_[node.next];
    node.symbol = node.join.result;
    node.next = joined.next;
    joined.symbol = kNoToken;
    if (node.next != kNoNode) nodes_[node.next].previous = i;
    look_up(pairs, i);
    if (node.previous != kNoNode) look_up(pairs, node.previous);
  }
  for (uint32_t i = 0; i < n && i != kNoNode; i = nodes_[i].next) {
    out.ids.push_back(nodes_[i].symbol);
    out.starts.push_back(i);
  }
}

}  // namespace ostro::tokenizer
