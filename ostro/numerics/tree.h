// tree_reduce, TreeFold: the tree of docs/spec/numerics.md, N8: the balanced binary tree over c partials
// whose left part is the largest power of two below c; the left operand is the lower index.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ostro/base/check.h"

namespace ostro::numerics {

// The size of the left part of the tree over c >= 2 partials: the largest power of two below c.
inline int64_t tree_split(int64_t c) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(c) - 1));
}

// The tree over at(first) .. at(first + count - 1), count >= 1, joined by op(left, right). `at` is passed on
// unchanged, so the whole recursion is one template instantiation.
template <typename At, typename Op>
auto tree_reduce_range(int64_t first, int64_t count, At& at, Op& op)
    -> std::decay_t<decltype(at(int64_t{0}))> {
  if (count == 1) return at(first);
  const int64_t left = tree_split(count);
  auto a = tree_reduce_range(first, left, at, op);
  auto b = tree_reduce_range(first + left, count - left, at, op);
  return op(std::move(a), std::move(b));
}

// The tree over at(0) .. at(count - 1), count >= 1, joined by op(left, right).
template <typename At, typename Op>
auto tree_reduce(int64_t count, At&& at, Op&& op) -> std::decay_t<decltype(at(int64_t{0}))> {
  OSTRO_CHECK(count >= 1, "a tree over {} partials", count);
  return tree_reduce_range(int64_t{0}, count, at, op);
}

// The tree over the elements of `partials`, at least one.
template <typename T, typename Op>
T tree_reduce(std::span<const T> partials, Op&& op) {
  return tree_reduce(
      static_cast<int64_t>(partials.size()), [&](int64_t i) { return partials[static_cast<size_t>(i)]; }, op);
}

// The tree of additions in T (f32, or f64 for losses and weights); no partials give +0.
template <typename T>
T tree_sum(std::span<const T> partials) {
  if (partials.empty()) return T{0};
  return tree_reduce(partials, [](T a, T b) -> T { return a + b; });
}

// The tree over partials that come one at a time, in order. It keeps at most log2(count) + 1 of them. T is
// any movable type (a number, a set of gradient buffers); op(left, right) returns the joined one.
template <typename T, typename Op>
class TreeFold {
 public:
  explicit TreeFold(Op op) : op_(std::move(op)) {}

  // Appends the partial with the next index.
  void push(T partial) {
    for (int64_t carry = count_++; carry & 1; carry >>= 1) {
      partial = op_(std::move(live_.back()), std::move(partial));
      live_.pop_back();
    }
    live_.push_back(std::move(partial));
  }

  int64_t count() const { return count_; }
  int64_t live() const { return static_cast<int64_t>(live_.size()); }

  // The root; at least one partial must have been pushed. The fold is empty again afterwards.
  T finish() {
    OSTRO_CHECK(count_ >= 1, "a tree over no partials");
    T root = std::move(live_.back());
    live_.pop_back();
    while (!live_.empty()) {
      root = op_(std::move(live_.back()), std::move(root));
      live_.pop_back();
    }
    count_ = 0;
    return root;
  }

 private:
  Op op_;
  std::vector<T> live_;  // complete subtrees, left to right, sizes descending powers of two
  int64_t count_ = 0;
};

}  // namespace ostro::numerics
