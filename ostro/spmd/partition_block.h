// BlockPartitioner: rewrites one block of a program for one worker; partition.cc drives it. Private to the
// room.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/op_table.h"
#include "ostro/spmd/layout.h"
#include "ostro/spmd/leaf_exchange.h"

namespace ostro::spmd {

// The part of a value of the original program that this worker holds.
struct Local {
  ir::ValueId id = -1;  // in the new block
  ir::Shape whole;
  Layout layout;
};
using Locals = std::vector<Local>;

// The axes of one op that are split, and the way in which its results are joined.
struct OpSplits {
  std::map<std::string, Split> axes;  // every axis that is split while the op runs
  std::string summed;                 // the one of them that the op sums over; "": none
  std::vector<std::string> maxed;     // those it takes a maximum over

  // The layout of a value of this shape in the op.
  Layout layout(const ir::Shape& shape) const;
};

// Chooses the splits of an op from its operand and result shapes. An error when the op sums over a split axis
// whose leaves are not whole subtrees.
Result<OpSplits> op_splits(const Placement& placement, Role role, const ir::Op& op,
                           const std::vector<ir::Shape>& in, const std::vector<ir::Shape>& out);

// Length of each of the boxes into which box_sumsq cuts an axis of this size; the last ones may be shorter.
int64_t box_length(int64_t size, int64_t boxes);
// For box_sumsq on a split axis: coordinate c holds the boxes [b[c], b[c + 1]) of the result b. Empty when a
// box would cross a bound of the split.
std::vector<int64_t> box_bounds(const Split& split, int64_t size, int64_t boxes);

// The name that an axis has where an op works on one of its leaves. It is not in the leaf table, so the axis
// is not cut again.
std::string part_name(const std::string& axis);

// Writes one worker's version of a block's ops into a new block. Owns neither placement nor block. Not
// thread-safe.
class BlockPartitioner {
 public:
  BlockPartitioner(const Placement& placement, Role role, int64_t rank, ir::Block& out)
      : placement_(placement), role_(role), rank_(rank), builder_(out) {}

  // Makes run() exchange the plan's gradients that scans of the block stack. The plan must outlive this.
  void exchange_in_scans(const ExchangePlan& plan) { exchange_ = &plan; }
  // Rewrites the ops of a block whose parameters are `args`, and returns its results. Errors: an op that
  // cannot run on the split axes, with its place in the model.
  Result<Locals> run(const ir::Block& block, const Locals& args);
  // Moves a value to another layout, with collectives or slices.
  Local move(const Local& x, const Layout& to);

 private:
  Result<Locals> run_op(const ir::Op& op, const Locals& in, const std::vector<ir::Shape>& out);
  Result<Locals> run_plain(const ir::Op& op, const Locals& in, const std::vector<ir::Shape>& out);
  Result<Locals> run_scan(const ir::Op& op, const Locals& in, const std::vector<ir::Shape>& out);
  Result<Locals> run_cond(const ir::Op& op, const Locals& in, const std::vector<ir::Shape>& out);
  Result<Local> run_sum(const ir::Op& op, const Locals& in, const ir::Shape& out, const OpSplits& splits);
  // split_fused.cc: ops that do more than sum over the split axis.
  Locals run_cross_entropy(const ir::Op& op, const Locals& in, const std::vector<ir::Shape>& out,
                           const OpSplits& splits);
  Locals run_attention_grad(const ir::Op& op, const Locals& in, const std::vector<ir::Shape>& out,
                            const OpSplits& splits);
  // The leaves of a split axis of this size that this worker holds, counted from its first index.
  std::vector<numerics::LeafBounds> leaves_here(const std::string& axis, const Split& split,
                                                int64_t size) const;
  // One leaf of x along the axis, under its part name; x itself when it does not have the axis.
  ir::ValueId leaf_of(ir::ValueId x, const std::string& axis, const numerics::LeafBounds& leaf);
  // The tree over the leaves of this worker.
  ir::ValueId tree(const std::vector<ir::ValueId>& partials);
  // The tree over workers of a value that is to have the shape `out`; each worker keeps its part if the
  // result is split over the same workers.
  Local tree_over_workers(ir::ValueId partial, const ir::Shape& out, const OpSplits& splits);
  // The rows of a gather or expert_dot whose table is split over workers. Only one worker has a row; the
  // others have +0, whose bits are zero. A sum would lose the sign of -0.
  ir::ValueId select_row(const ir::Op& op, ir::ValueId x, const OpSplits& splits);
  // Rewrites a region of an op, with these layouts of its parameters and results. An error sets `status`, and
  // the block has no results.
  ir::Block region(const ir::Block& body, const Locals& outer, const std::vector<Layout>& params,
                   const std::vector<Layout>& results, Status& status);
  void shift_origins(const ir::Op& op, const OpSplits& splits, std::vector<ir::ValueId>& operands,
                     const Locals& in);
  ir::Attrs local_attrs(const ir::Op& op, const OpSplits& splits, const Locals& in);
  // Attributes of an all-reduce over the workers along a mesh axis.
  ir::Attrs over(const std::string& mesh_axis) const {
    return {{"mesh_axis", mesh_axis}, {"workers", placement_.sharding.mesh.size_of(mesh_axis)}};
  }
  Layout natural(const ir::Shape& shape) const { return placement_.layout(role_, shape); }
  std::pair<int64_t, int64_t> mine(const Split& split, int64_t size) const {
    return held(placement_.sharding.mesh, rank_, split, size);
  }
  ir::Shape local(const Layout& layout, const ir::Shape& shape) const {
    return local_shape(placement_.sharding.mesh, rank_, layout, shape);
  }

  const Placement& placement_;
  Role role_;
  int64_t rank_;
  ir::Builder builder_;
  // The gradient that result v of a scan is, if it is exchanged there.
  const ExchangedGradient* exchanged(ir::ValueId v) const;

  const ExchangePlan* exchange_ = nullptr;                            // of the program's outermost block only
  std::map<std::pair<ir::ValueId, std::string>, ir::ValueId> moved_;  // results of move()
};

}  // namespace ostro::spmd
