// BlockLowering: lowers one Block to a Plan: where each value lies, and which steps make it. Internal to
// compile. There are no errors: the block was checked. Not thread-safe.
#pragma once

#include <unordered_map>
#include <vector>

#include "ostro/compile/fuse/fuse.h"
#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// The nests of a Module, shared by its plans; each once.
class NestTable {
 public:
  // The number of the nest.
  int32_t add(Nest nest);
  std::vector<Nest> take() { return std::move(nests_); }

 private:
  std::vector<Nest> nests_;
  std::unordered_map<Nest, int32_t, NestHash> number_of_;
};

class BlockLowering {
 public:
  BlockLowering(const ir::Block& block, const numerics::LeafTable& leaves, const LowerOptions& options,
                NestTable& nests);
  Plan run();

 private:
  friend class MakeNest;

  // Part 1 finds the values that are views on others, and places the computed ones.
  void find_views();
  // Finds the dequantised matrices that only products read, because products take them as they are stored.
  void find_stored_matrices();
  void place_results();
  // Part 2 makes the steps.
  void lower_op(const ir::Op& op);
  void lower_region_op(const ir::Op& op, Step step);
  void copy_results();
  void lower_units();
  void lower_unit(const Unit& unit);  // a group or a serial sum
  // Values that are read only by a stack or concat are written directly into its result (place_parts.cc).
  void place_parts(const std::vector<Unit>& units);

  bool is_root(ir::ValueId v) const { return relative_[static_cast<size_t>(v)].buffer == v; }
  // Where v lies, as a view on a buffer of the plan; v's root must have been lowered.
  View located(ir::ValueId v) const;
  // The same, but dense: copied first when it is not.
  View located_dense(ir::ValueId v);
  // Where to write v: a result of the plan, its part of the result of a stack or concat, or a new temporary.
  // Dense, except for such a part.
  View destination(ir::ValueId v);
  int32_t new_buffer(BufferKind kind, int64_t index, int64_t bytes);

  const ir::Block& block_;
  const numerics::LeafTable& leaves_;
  const LowerOptions& options_;
  NestTable& nests_;
  Plan plan_;
  std::vector<View> relative_;  // by value: a view on its root (buffer = root's ValueId)
  std::vector<View> place_;     // by root: where it lies (buffer -1: not yet)
  std::vector<View> copies_;    // by value: its dense copy, if one was made
  std::vector<char> is_splat_;  // by value: a constant with one element stored
  // By value: the dequantize whose result only products read, or nullptr. It has no step of its own.
  std::vector<const ir::Op*> stored_;
  std::vector<char> is_joined_;  // by value: a stack or concat whose parts are written in their places
};

}  // namespace ostro::compile
