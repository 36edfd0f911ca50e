#include "ostro/tokenizer/symbol_merge.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "ostro/base/check.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kShortRow = 48;  // up to here a scan for the best pair beats a heap
constexpr uint32_t kNone = 0xFFFFFFFF;

}  // namespace

SymbolPairs::SymbolPairs(size_t count) : entries_(std::bit_ceil(2 * count + 2)), mask_(entries_.size() - 1) {}

void SymbolPairs::insert(uint32_t left, uint32_t right, Join join) {
  const uint64_t key = uint64_t{left} << 32 | right;
  size_t i = slot(key);
  while (entries_[i].key != kEmpty && entries_[i].key != key) i = (i + 1) & mask_;
  entries_[i] = {key, join};
}

void SymbolMerge::run(const SymbolPairs& pairs, std::vector<uint32_t>& row, std::vector<uint32_t>* starts) {
  if (row.size() < 2) return;
  row.size() <= kShortRow ? run_short(pairs, row, starts) : run_long(pairs, row, starts);
}

void SymbolMerge::run_short(const SymbolPairs& pairs, std::vector<uint32_t>& row,
                            std::vector<uint32_t>* starts) {
  SymbolPairs::Join joins[kShortRow];  // joins[i] is of row[i] and row[i + 1]
  uint32_t* const r = row.data();
  size_t n = row.size();
  for (size_t i = 0; i + 1 < n; ++i) joins[i] = pairs.find(r[i], r[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (joins[i].rank < joins[best].rank) best = i;
    }
    if (joins[best].rank == kNoSymbol) break;
    r[best] = joins[best].result;
    std::copy(r + best + 2, r + n, r + best + 1);
    std::copy(joins + best + 1, joins + n - 1, joins + best);
    if (starts != nullptr) starts->erase(starts->begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --n;
    if (best > 0) joins[best - 1] = pairs.find(r[best - 1], r[best]);
    if (best + 1 < n) joins[best] = pairs.find(r[best], r[best + 1]);
  }
  row.resize(n);
}

void SymbolMerge::look_up(const SymbolPairs& pairs, uint32_t i) {
  Node& node = nodes_[i];
  node.join = node.next == kNone ? SymbolPairs::Join{} : pairs.find(node.symbol, nodes_[node.next].symbol);
  if (node.join.rank == kNoSymbol) return;
  queue_.push_back(uint64_t{node.join.rank} << 32 | i);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

void SymbolMerge::run_long(const SymbolPairs& pairs, std::vector<uint32_t>& row,
                           std::vector<uint32_t>* starts) {
  OSTRO_CHECK(row.size() < kNone, "a run of {} characters without a place to cut is too long for BPE",
              row.size());
  const auto n = static_cast<uint32_t>(row.size());
  nodes_.resize(n);
  queue_.clear();
  for (uint32_t i = 0; i < n; ++i)
    nodes_[i] = {row[i], i - 1, i + 1 == n ? kNone : i + 1, {}};  // 0 - 1 is kNone
  for (uint32_t i = 0; i < n; ++i) look_up(pairs, i);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(queue_.back() >> 32), i = static_cast<uint32_t>(queue_.back());
    queue_.pop_back();
    Node& node = nodes_[i];
    if (node.symbol == kNoSymbol || node.join.rank != rank) continue;
    Node& joined = nodes_[node.next];
    node.symbol = node.join.result;
    node.next = joined.next;
    joined.symbol = kNoSymbol;
    if (node.next != kNone) nodes_[node.next].previous = i;
    look_up(pairs, i);
    if (node.previous != kNone) look_up(pairs, node.previous);
  }
  size_t kept = 0;
  for (uint32_t i = 0; i != kNone; i = nodes_[i].next) {
    if (starts != nullptr) (*starts)[kept] = (*starts)[i];
    row[kept++] = nodes_[i].symbol;
  }
  row.resize(kept);
  if (starts != nullptr) starts->resize(kept);
}

}  // namespace ostro::tokenizer
