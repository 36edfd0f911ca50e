// LeafShares: how many leaves of a step each worker runs (trainer.shares). Shares decide who computes what,
// and no bit: the tree over the leaves is fixed (numerics.md, N8).
//
// Workers are named by their place among those that run different leaves. A value; any thread may use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ostro/train/programs/leaf_plan.h"

namespace ostro::fleet {

class LeafShares {
 public:
  LeafShares() = default;  // even shares
  // `counts`: the leaves of each worker, by place; none is negative. For steps of as many leaves as they add
  // up to; in others shares are even.
  explicit LeafShares(const std::vector<int64_t>& counts);

  bool is_even() const { return ends_.empty(); }
  // Whether it says who has how many of so many leaves.
  bool fits(int64_t leaves, int64_t workers) const {
    return !ends_.empty() && ends_.back() == leaves && static_cast<int64_t>(ends_.size()) == workers;
  }
  // The leaves of the worker at `place` of `workers`, in a step of `leaves`: consecutive ones; those of lower
  // places come first.
  train::LeafRange range(int64_t leaves, int64_t workers, int64_t place) const;
  // Of such a step: the number of leaves by place.
  std::vector<int64_t> counts(int64_t leaves, int64_t workers) const;

  bool operator==(const LeafShares&) const = default;

 private:
  std::vector<int64_t> ends_;  // by place: the leaf after its last one; empty: even
};

// The most sums of gradients that a worker holds at a time for any range of so many leaves.
int64_t most_partials(int64_t leaves);
// Sums of subtrees to plan memory for, where the present shares have `now`: with measured shares as many as
// any shares can have, which come without a new plan.
inline int64_t planned_subtrees(int64_t now, int64_t leaves, bool measured) {
  return measured ? std::min(leaves, std::max(now, most_partials(leaves))) : now;
}

}  // namespace ostro::fleet
