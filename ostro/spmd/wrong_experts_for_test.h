// shift_experts: a deliberate fault in a partitioned program, for tests that must notice it.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "ostro/ir/program/builder.h"

namespace ostro::spmd {

// Makes all workers but the first take the rows of the expert before their own. Does nothing to a program in
// which no experts are split over workers.
inline void shift_experts(ir::Block& block) {
  std::vector<ir::Op> ops = std::exchange(block.ops, {});
  ir::Builder builder(block);
  std::set<ir::ValueId> sums;  // an origin that partition() has moved is one
  for (ir::Op& op : ops) {
    for (ir::Block& region : op.regions) shift_experts(region);
    if (op.kind == ir::OpKind::add) sums.insert(op.results[0]);
    if (op.kind == ir::OpKind::expert_dot || op.kind == ir::OpKind::expert_outer)
      if (ir::ValueId& origin = op.operands[3]; sums.contains(origin))
        origin = builder.add(ir::OpKind::add, {origin, builder.splat(-1.0, builder.shape(origin))});
    block.ops.push_back(std::move(op));
  }
}

}  // namespace ostro::spmd
