// leaf_range, subtrees: spread the leaves (microbatches) of a step over the workers. The gradients of all
// leaves are summed in one fixed binary tree, whatever the number of workers (numerics.md, N8). A worker runs
// a contiguous range of leaves, so it can compute the sums of some subtrees of that tree alone. The functions
// depend on their arguments alone; any thread may call them.
#pragma once

#include <cstdint>
#include <vector>

namespace ostro::train {

// A node of the tree over all leaves. It covers the leaves [first, first + count).
struct Subtree {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const Subtree&) const = default;
};

// The leaves [begin, end) that worker `rank` of `workers` runs. Lower ranks have lower leaves. If there are
// fewer leaves than workers, the last workers have none.
struct LeafRange {
  int64_t begin = 0, end = 0;
};
LeafRange leaf_range(int64_t leaves, int64_t workers, int64_t rank);

// The largest subtrees of the tree over `leaves` leaves that lie completely in the range, in ascending order.
// Example: of 8 leaves, the range [2, 8) gives the subtrees [2, 4) and [4, 8).
std::vector<Subtree> subtrees(int64_t leaves, LeafRange range);

// numerics.slice_partials: the leaves are shared out to `groups` groups as to so many workers. The sums of
// the largest subtrees of each group are rounded to bf16.

// True for these subtrees. Never with 0 groups.
bool is_rounded(int64_t leaves, int64_t groups, Subtree node);
// The largest subtrees in the range that have leaves of one group only, ascending; with 0 groups, subtrees().
std::vector<Subtree> subtrees_in_groups(int64_t leaves, int64_t groups, LeafRange range);

// True if b begins where a ends and the two are the children of a node of the tree over `leaves` leaves.
bool siblings(int64_t leaves, Subtree a, Subtree b);

// The most partial sums that are in memory at one time while a subtree of `leaves` leaves is summed: log2 +
// 1.
int64_t live_partials(int64_t leaves);

}  // namespace ostro::train
