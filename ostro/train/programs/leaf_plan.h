// Which worker runs which leaves of a step, and which subtrees of the one tree over leaves it can fold by
// itself (numerics.md, N8).
#pragma once

#include <cstdint>
#include <vector>

namespace ostro::train {

// A node of the tree over all leaves: the leaves [first, first + count).
struct Subtree {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const Subtree&) const = default;
};

// Worker `rank` of `workers` runs the leaves [begin, end): contiguous, the first workers first; with fewer
// leaves than workers the last ones have none.
struct LeafRange {
  int64_t begin = 0, end = 0;
};
LeafRange leaf_range(int64_t leaves, int64_t workers, int64_t rank);

// The largest nodes of the tree over `leaves` that lie in the range, ascending.
std::vector<Subtree> subtrees(int64_t leaves, LeafRange range);

// Partial sums alive at once, at most, while a subtree of so many leaves is folded: log2 + 1.
int64_t live_partials(int64_t leaves);

}  // namespace ostro::train
