// LeafTable: feature leaves (docs/spec/numerics.md, N8). They cut an axis that may be split over workers, so
// that contractions and sums over it give the same bits on one worker and on many. Values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::numerics {

// Half-open range [begin, end) of indices of one axis.
struct LeafBounds {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const LeafBounds&) const = default;
};

// The ordered list of cut axes; part of a Program's meaning. When several axes are contracted at once
// their leaves nest in table order, last innermost. An axis that is absent has one leaf.
struct LeafTable {
  std::vector<std::pair<std::string, int64_t>> axes;  // (axis name, number of leaves >= 1)

  // Number of leaves of the axis, 1 when the table has no entry for it.
  int64_t count(std::string_view axis) const;
  // The position in the table, or -1.
  int64_t position(std::string_view axis) const;
  // Checks that counts are >= 1, and names are not empty and not repeated. Error: kInvalidArgument; it names
  // the entry.
  Status validate() const;

  bool operator==(const LeafTable&) const = default;
};

// Indices per leaf of an axis of size n (>= 0) cut into `count` (>= 1): ceil(n / count), rounded up to a
// multiple of 8 for axes "mlp" and "vocab" and of 128 for "pos". At least 1, so that n = 0 never leads to a
// division by 0.
int64_t leaf_size(std::string_view axis, int64_t n, int64_t count);

// Leaf i, with 0 <= i < count: [min(n, i L), min(n, (i + 1) L)) where L = leaf_size(axis, n, count). Trailing
// leaves may be empty.
LeafBounds leaf_bounds(std::string_view axis, int64_t n, int64_t count, int64_t i);

// All `count` leaves in order, the empty ones included (they are +0 operands of the tree).
std::vector<LeafBounds> leaf_bounds(std::string_view axis, int64_t n, int64_t count);
// The end of each of these leaves, in order.
std::vector<int64_t> leaf_ends(std::string_view axis, int64_t n, int64_t count);

}  // namespace ostro::numerics
