#include "ostro/train/programs/leaf_plan.h"

#include <algorithm>
#include <bit>

#include "ostro/numerics/tree.h"

namespace ostro::train {
namespace {

void collect(Subtree node, LeafRange range, std::vector<Subtree>& out) {
  const int64_t end = node.first + node.count;
  if (end <= range.begin || node.first >= range.end) return;
  if (node.first >= range.begin && end <= range.end) {
    out.push_back(node);
    return;
  }
  const int64_t left = numerics::tree_split(node.count);
  collect({node.first, left}, range, out);
  collect({node.first + left, node.count - left}, range, out);
}

}  // namespace

int64_t live_partials(int64_t leaves) {
  return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(leaves)));
}

LeafRange leaf_range(int64_t leaves, int64_t workers, int64_t rank) {
  const int64_t busy = std::min(leaves, workers);
  if (rank >= busy) return {leaves, leaves};
  return {leaves * rank / busy, leaves * (rank + 1) / busy};
}

std::vector<Subtree> subtrees(int64_t leaves, LeafRange range) {
  std::vector<Subtree> out;
  if (leaves > 0) collect({0, leaves}, range, out);
  return out;
}

bool is_rounded(int64_t leaves, int64_t groups, Subtree node) {
  for (int64_t group = 0; group < std::min(groups, leaves); ++group) {
    const LeafRange range = leaf_range(leaves, groups, group);
    if (node.first < range.begin || node.first >= range.end) continue;
    const std::vector<Subtree> largest = subtrees(leaves, range);
    return std::find(largest.begin(), largest.end(), node) != largest.end();
  }
  return false;
}

std::vector<Subtree> subtrees_in_groups(int64_t leaves, int64_t groups, LeafRange range) {
  if (groups == 0) return subtrees(leaves, range);
  std::vector<Subtree> out;
  for (int64_t group = 0; group < std::min(groups, leaves); ++group) {
    const LeafRange own = leaf_range(leaves, groups, group);
    const LeafRange part{std::max(own.begin, range.begin), std::min(own.end, range.end)};
    if (part.begin >= part.end) continue;
    const std::vector<Subtree> some = subtrees(leaves, part);
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

bool siblings(int64_t leaves, Subtree a, Subtree b) {
  Subtree node{0, leaves};
  while (node.count > a.count) {
    const int64_t left = numerics::tree_split(node.count);
    const Subtree first{node.first, left}, second{node.first + left, node.count - left};
    if (first == a) return second == b;
    node = a.first < second.first ? first : second;
  }
  return false;
}

}  // namespace ostro::train
