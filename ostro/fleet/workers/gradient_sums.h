// GradientAdder, SubtreeSums: add up gradients along the tree over leaves (numerics.md, N8). Errors: those of
// the engine. Not thread-safe.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/programs/leaf_plan.h"

namespace ostro::fleet {

// Adds two lists of f32 arrays, always of the same shapes. Its program is compiled when it is first used.
class GradientAdder {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // `engine` must outlive it.
  explicit GradientAdder(runtime::Engine& engine) : engine_(engine) {}
  Result<Buffers> add(Buffers a, Buffers b);

 private:
  runtime::Engine& engine_;
  std::unique_ptr<runtime::Executable> program_;
};

// Joins sums over subtrees of leaves that come in ascending order. Two of them are added as soon as they are
// the children of one node, so what remains are the largest subtrees of what came.
class SubtreeSums {
 public:
  using Buffers = GradientAdder::Buffers;

  // Of the tree over `leaves` leaves. `adder` must outlive it.
  SubtreeSums(int64_t leaves, GradientAdder& adder) : leaves_(leaves), adder_(adder) {}
  Status push(train::Subtree node, Buffers sum);
  const std::vector<std::pair<train::Subtree, Buffers>>& sums() const { return sums_; }
  void clear() { sums_.clear(); }
  // The sum over all leaves; all must have come.
  Buffers root();

 private:
  int64_t leaves_;
  GradientAdder& adder_;
  std::vector<std::pair<train::Subtree, Buffers>> sums_;
};

}  // namespace ostro::fleet
