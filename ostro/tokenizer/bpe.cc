#include "ostro/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "ostro/base/check.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kShortPiece = 64;  // up to here a linear scan for the best pair beats a heap

}  // namespace

MergeTable::MergeTable(size_t count) : entries_(std::bit_ceil(2 * count + 2)), mask_(entries_.size() - 1) {}

void MergeTable::insert(uint32_t left, uint32_t right, Merge merge) {
  const uint64_t key = uint64_t{left} << 32 | right;
  size_t i = slot(key);
  while (entries_[i].key != kEmpty && entries_[i].key != key) i = (i + 1) & mask_;
  entries_[i] = {key, merge};
}

void BpeModel::encode(std::string_view piece, std::vector<uint32_t>& out) const {
  if (ignore_merges) {
    const auto it = whole.find(std::string(piece));
    if (it != whole.end()) {
      out.push_back(it->second);
      return;
    }
  }
  if (piece.size() <= kShortPiece) {
    encode_short(piece, out);
  } else {
    encode_long(piece, out);
  }
}

void BpeModel::encode_short(std::string_view piece, std::vector<uint32_t>& out) const {
  uint32_t ids[kShortPiece];
  MergeTable::Merge pairs[kShortPiece];  // pairs[i] joins ids[i] and ids[i + 1]
  size_t n = 0;
  for (const char byte : piece) {
    const uint32_t id = byte_ids[static_cast<uint8_t>(byte)];
    if (id != kNoToken) ids[n++] = id;
  }
  for (size_t i = 0; i + 1 < n; ++i) pairs[i] = merges.find(ids[i], ids[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoToken) break;
    ids[best] = pairs[best].result;
    std::copy(ids + best + 2, ids + n, ids + best + 1);
    std::copy(pairs + best + 1, pairs + n - 1, pairs + best);
    --n;
    if (best > 0) pairs[best - 1] = merges.find(ids[best - 1], ids[best]);
    if (best + 1 < n) pairs[best] = merges.find(ids[best], ids[best + 1]);
  }
  out.insert(out.end(), ids, ids + n);
}

void BpeModel::encode_long(std::string_view piece, std::vector<uint32_t>& out) const {
  constexpr uint32_t kNone = 0xFFFFFFFF;
  struct Node {
    uint32_t id, previous, next;
    MergeTable::Merge pair;  // with the next node
  };
  OSTRO_CHECK(piece.size() < kNone, "a piece of {} bytes is too long for BPE", piece.size());
  std::vector<Node> nodes;
  nodes.reserve(piece.size());
  for (const char byte : piece) {
    const uint32_t id = byte_ids[static_cast<uint8_t>(byte)];
    const auto i = static_cast<uint32_t>(nodes.size());
    if (id != kNoToken) nodes.push_back({id, i - 1, i + 1, {}});
  }
  if (nodes.empty()) return;
  nodes.back().next = kNone;

  // Smallest rank first, then smallest position. An entry is stale when its node has died or has another
  // pair.
  std::vector<uint64_t> storage;
  storage.reserve(nodes.size());
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue(std::greater<>{},
                                                                             std::move(storage));
  const auto look_up = [&](uint32_t i) {
    Node& node = nodes[i];
    node.pair = node.next == kNone ? MergeTable::Merge{} : merges.find(node.id, nodes[node.next].id);
    if (node.pair.rank != kNoToken) queue.push(uint64_t{node.pair.rank} << 32 | i);
  };
  for (uint32_t i = 0; i < nodes.size(); ++i) look_up(i);
  while (!queue.empty()) {
    const auto rank = static_cast<uint32_t>(queue.top() >> 32);
    const auto i = static_cast<uint32_t>(queue.top());
    queue.pop();
    Node& node = nodes[i];
    if (node.id == kNoToken || node.pair.rank != rank) continue;
    Node& dead = nodes[node.next];
    node.id = node.pair.result;
    node.next = dead.next;
    dead.id = kNoToken;
    if (node.next != kNone) nodes[node.next].previous = i;
    look_up(i);
    if (node.previous != kNone) look_up(node.previous);
  }
  for (uint32_t i = 0; i != kNone; i = nodes[i].next) out.push_back(nodes[i].id);
}

}  // namespace ostro::tokenizer
