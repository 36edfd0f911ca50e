#include "ostro/tokenizer/bpe/long_merge.h"

#include <algorithm>
#include <bit>

namespace ostro::tokenizer {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

}  // namespace

void LongMerge::start(std::span<const uint32_t> row, size_t ranks) {
  const auto n = static_cast<uint32_t>(row.size());
  nodes_.resize(n);
  for (uint32_t i = 0; i < n; ++i) nodes_[i] = {row[i], i - 1, i + 1, kNoToken};  // 0 - 1 is kNone
  nodes_.back().next = kNone;
  waiting_.clear();
  waiting_.reserve(size_t{2} * n);
  if (queues_.size() < ranks) {
    queues_.resize(ranks, {kNone, kNone});
    unsorted_.resize(ranks);
    busy_.resize(ranks / 64 + 1);
    busy_words_.resize(busy_.size() / 64 + 1);
  }
}

// Looks up the pair of the node and its next node, and puts it into the queue of its rank.
void LongMerge::look_up(const MergeTable& table, uint32_t i) {
  Node& node = nodes_[i];
  node.rank = node.next == kNone ? kNoToken : table.find(node.id, nodes_[node.next].id).rank;
  if (node.rank == kNoToken) return;
  const auto place = static_cast<uint32_t>(waiting_.size());
  waiting_.push_back({i, kNone});
  Queue& queue = queues_[node.rank];
  if (queue.first == kNone) {
    queue.first = place;
    unsorted_[node.rank] = 0;
    busy_[node.rank / 64] |= uint64_t{1} << node.rank % 64;
    busy_words_[node.rank / 4096] |= uint64_t{1} << node.rank / 64 % 64;
  } else {
    if (waiting_[queue.last].node > i) unsorted_[node.rank] = 1;
    waiting_[queue.last].next = place;
  }
  queue.last = place;
  lowest_new_ = std::min(lowest_new_, node.rank);
}

uint32_t LongMerge::lowest_rank() const {
  for (size_t i = 0; i < busy_words_.size(); ++i) {
    if (busy_words_[i] == 0) continue;
    const size_t word = i * 64 + static_cast<size_t>(std::countr_zero(busy_words_[i]));
    return static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(busy_[word])));
  }
  return kNoToken;
}

void LongMerge::sort_queue(uint32_t rank) {
  sorting_.clear();
  for (uint32_t w = queues_[rank].first; w != kNone; w = waiting_[w].next)
    sorting_.push_back(waiting_[w].node);
  std::sort(sorting_.begin(), sorting_.end());
  uint32_t w = queues_[rank].first;
  for (const uint32_t node : sorting_) {
    waiting_[w].node = node;
    w = waiting_[w].next;
  }
  unsorted_[rank] = 0;
}

// Merges a node with its next node and looks up the two new pairs.
void LongMerge::join(const MergeTable& table, uint32_t i, uint32_t result) {
  Node& node = nodes_[i];
  Node& joined = nodes_[node.next];
  node.id = result;
  node.next = joined.next;
  joined.rank = kNoToken;
  if (node.next != kNone) nodes_[node.next].previous = i;
  look_up(table, i);
  if (node.previous != kNone) look_up(table, node.previous);
}

// Processes the queue of this rank. Stops when a pair of lower rank appears.
void LongMerge::work_off(const MergeTable& table, uint32_t rank, const Merge& merge) {
  lowest_new_ = kNoToken;
  while (queues_[rank].first != kNone) {
    const Waiting w = waiting_[queues_[rank].first];
    queues_[rank].first = w.next;
    if (w.next != kNone) __builtin_prefetch(&nodes_[waiting_[w.next].node]);
    if (nodes_[w.node].rank != rank) continue;  // stale: this node or its neighbour was merged meanwhile
    join(table, w.node, merge.result);
    if (lowest_new_ < rank) break;
  }
  if (queues_[rank].first != kNone) return;
  busy_[rank / 64] &= ~(uint64_t{1} << rank % 64);
  if (busy_[rank / 64] == 0) busy_words_[rank / 4096] &= ~(uint64_t{1} << rank / 64 % 64);
}

// Takes the ranks in ascending order. A merge may create a pair of a rank below the current one; work_off()
// then stops, and lowest_rank() takes that queue first. Queues hold positions in the order in which the pairs
// appeared, and keep stale ones, which work_off() skips.
void LongMerge::run(const MergeTable& table, const MergeOrder& order, std::span<const uint32_t> row,
                    MergedRow& out) {
  start(row, order.by_rank.size());
  for (uint32_t i = 0; i + 1 < nodes_.size(); ++i) look_up(table, i);
  for (uint32_t rank = lowest_rank(); rank != kNoToken; rank = lowest_rank()) {
    const Merge& merge = order.by_rank[rank];
    // The queue must be sorted in two cases. Equal pairs can overlap if both parts are the same token
    // ("aaa"). And the order matters if a merge can create a pair of lower rank.
    if (unsorted_[rank] && (merge.left == merge.right || !order.ascending)) sort_queue(rank);
    work_off(table, rank, merge);
  }
  for (uint32_t i = 0; i != kNone; i = nodes_[i].next) {
    out.ids.push_back(nodes_[i].id);
    out.starts.push_back(i);
  }
}

}  // namespace ostro::tokenizer
