// axis_role: the effect of sharding an axis on each op (docs/spec/spmd.md). It follows from the axis names
// alone; nothing is propagated from op to op.
#include <algorithm>

#include "ostro/ir/program/op_table.h"

namespace ostro::ir {
namespace {

bool listed(const std::vector<std::string>& names, std::string_view axis) {
  return std::find(names.begin(), names.end(), axis) != names.end();
}

AxisRole attention_role(const Op& op, std::span<const Shape> in, std::string_view axis) {
  if (axis == op.attrs.str("head_dim") || axis == op.attrs.str("key")) return AxisRole::kWhole;
  if (axis == op.attrs.str("query")) {
    // dk and dv sum over queries: one partial per pos leaf, then the tree. q_origin carries the position.
    return op.kind == OpKind::attention ? AxisRole::kOrigin : AxisRole::kSum;
  }
  // A head axis that k does not have (the group) is summed in dk and dv by one chain of additions, so it must
  // be whole. Other axes are batch axes.
  return in[1].has(axis) || op.kind == OpKind::attention ? AxisRole::kParallel : AxisRole::kWhole;
}

}  // namespace

AxisRole axis_role(const Op& op, std::span<const Shape> in, std::span<const Shape> out,
                   std::string_view axis) {
  (void)out;
  const OpKind k = op.kind;
  if (is_elementwise(k)) return AxisRole::kParallel;
  switch (k) {
    case OpKind::constant:
    case OpKind::fold_in: return AxisRole::kWhole;
    case OpKind::iota:
    case OpKind::random:
    case OpKind::fingerprint: return AxisRole::kOrigin;
    case OpKind::broadcast:
    case OpKind::transpose:
    case OpKind::rename: return AxisRole::kParallel;
    case OpKind::split_axis:
    case OpKind::merge_axes: {
      if (axis == op.attrs.str("axis")) return AxisRole::kWhole;
      return listed(op.attrs.strs("axes"), axis) ? AxisRole::kWhole : AxisRole::kParallel;
    }
    case OpKind::slice:
    case OpKind::pad:
    case OpKind::concat:
    case OpKind::split:
    case OpKind::stack:
    case OpKind::unstack:
    case OpKind::reverse:
    case OpKind::dynamic_slice:
    case OpKind::dynamic_update_slice:
    case OpKind::sort:
    case OpKind::top_k:
    case OpKind::argmax: return axis == op.attrs.str("axis") ? AxisRole::kWhole : AxisRole::kParallel;
    case OpKind::paged_write:  // every worker writes all rows, of its heads
      return axis == op.attrs.str("page") || axis == op.attrs.str("slot") || axis == op.attrs.str("row")
                 ? AxisRole::kWhole
                 : AxisRole::kParallel;
    case OpKind::paged_attention:  // by heads; every worker has all rows
      for (const char* whole : {"row", "page", "slot", "entry", "head_dim"})
        if (axis == op.attrs.str(whole)) return AxisRole::kWhole;
      return AxisRole::kParallel;
    case OpKind::gather: return axis == op.attrs.str("axis") ? AxisRole::kOrigin : AxisRole::kParallel;
    case OpKind::scatter_add:
      if (axis == op.attrs.str("axis")) return AxisRole::kOrigin;
      return in[1].has(axis) && !(op.attrs.has("batch") && listed(op.attrs.strs("batch"), axis))
                 ? AxisRole::kSum
                 : AxisRole::kParallel;
    case OpKind::sum: return listed(op.attrs.strs("axes"), axis) ? AxisRole::kSum : AxisRole::kParallel;
    case OpKind::tree_sum:
      return listed(op.attrs.strs("axes"), axis) ? AxisRole::kWhole : AxisRole::kParallel;
    case OpKind::reduce_max:
    case OpKind::reduce_min:
      return listed(op.attrs.strs("axes"), axis) ? AxisRole::kMax : AxisRole::kParallel;
    case OpKind::dot: return listed(op.attrs.strs("over"), axis) ? AxisRole::kSum : AxisRole::kParallel;
    case OpKind::dequantize:  // a group's place among the rows is known only with all rows
      return axis == op.attrs.str("groups") || listed(op.attrs.strs("over"), axis) ? AxisRole::kWhole
                                                                                   : AxisRole::kParallel;
    case OpKind::quantize:  // a block's scale is known only with all of the block
      if (axis == op.attrs.str("groups") || listed(op.attrs.strs("over"), axis) || !in[0].has(axis))
        return AxisRole::kWhole;
      if (in.size() > 1 && in[1].has(axis)) return AxisRole::kWhole;  // it would cut the key
      return in.size() > 1 ? AxisRole::kOrigin : AxisRole::kParallel;
    case OpKind::dot_int8:  // one chain of additions over all blocks, which no leaf cuts
      return axis == op.attrs.str("groups") || listed(op.attrs.strs("over"), axis) ? AxisRole::kWhole
                                                                                   : AxisRole::kParallel;
    case OpKind::expert_dot_int8:
      if (axis == op.attrs.str("axis")) return AxisRole::kOrigin;
      return axis == op.attrs.str("groups") || listed(op.attrs.strs("over"), axis) ? AxisRole::kWhole
                                                                                   : AxisRole::kParallel;
    case OpKind::expert_outer_int8:  // a block's scale is known only with all rows of its expert
      if (axis == op.attrs.str("axis")) return AxisRole::kOrigin;
      if (in[2].has(axis) || in[4].has(axis)) return AxisRole::kWhole;
      return in[1].has(axis) ? AxisRole::kOrigin : AxisRole::kParallel;
    case OpKind::expert_dot:
      if (axis == op.attrs.str("axis")) return AxisRole::kOrigin;
      return listed(op.attrs.strs("over"), axis) ? AxisRole::kSum : AxisRole::kParallel;
    case OpKind::expert_outer:
      if (axis == op.attrs.str("axis")) return AxisRole::kOrigin;
      return in[2].has(axis) ? AxisRole::kSum : AxisRole::kParallel;
    case OpKind::attention:
    case OpKind::attention_grad: return attention_role(op, in, axis);
    case OpKind::cross_entropy:  // the maximum and the target's logit are joined too (spmd/split_fused.cc)
    case OpKind::cross_entropy_sum:
      return axis == op.attrs.str("axis") ? AxisRole::kSum : AxisRole::kParallel;
    case OpKind::cross_entropy_grad:  // the target is counted from the start of the whole vocabulary
      return axis == op.attrs.str("axis") ? AxisRole::kOrigin : AxisRole::kParallel;
    case OpKind::box_sumsq:
      return listed(op.attrs.strs("axes"), axis) ? AxisRole::kParallel : AxisRole::kWhole;
    case OpKind::scan: return axis == op.attrs.str("axis") ? AxisRole::kWhole : AxisRole::kParallel;
    case OpKind::cond:
    case OpKind::custom: return AxisRole::kParallel;  // decided op by op inside the regions
    default:  // collectives too: partition makes them for the parts that the workers hold by then
      return AxisRole::kWhole;
  }
}

}  // namespace ostro::ir
