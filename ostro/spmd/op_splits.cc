// op_splits: chooses the axes of an op that are split, from the names of all axes of its operands and
// results.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ostro/numerics/fingerprint.h"
#include "ostro/spmd/partition_block.h"

namespace ostro::spmd {
namespace {

using ir::AxisRole;
using ir::OpKind;

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Every axis of the op with its size: operands first. Ops whose axis has several sizes need it whole, except
// box_sumsq, where the operand's size counts.
std::vector<ir::Axis> union_of(const std::vector<ir::Shape>& in, const std::vector<ir::Shape>& out) {
  std::vector<ir::Axis> axes;
  std::set<std::string> seen;
  for (const auto* list : {&in, &out})
    for (const ir::Shape& s : *list)
      for (const ir::Axis& a : s.axes)
        if (seen.insert(a.name).second) axes.push_back(a);
  return axes;
}

// The role from the op table, but kWhole where a local op plus a collective would not give the same bits.
AxisRole role_of(const ir::Op& op, const std::vector<ir::Shape>& in, const std::vector<ir::Shape>& out,
                 const std::string& axis, const Split& split) {
  const AxisRole role = ir::axis_role(op, in, out, axis);
  switch (op.kind) {
    case OpKind::constant: return op.attrs.has("data") ? AxisRole::kWhole : AxisRole::kParallel;
    case OpKind::rename:  // the axis has one name in the operand and another in the result
      return listed(op.attrs.strs("from"), axis) || listed(op.attrs.strs("to"), axis) ? AxisRole::kWhole
                                                                                      : role;
    case OpKind::cross_entropy:  // rows can be split instead
      return role == AxisRole::kSum && split.leaves.empty() ? AxisRole::kWhole : role;
    case OpKind::attention_grad:
      if (role == AxisRole::kSum) return split.leaves.empty() ? AxisRole::kWhole : role;  // heads, instead
      // The sink's gradient is one chain over all rows of its heads, within a leaf of queries.
      if (op.attrs.i64("sink", 0) != 0 && !in.back().has(axis)) return AxisRole::kWhole;
      return role == AxisRole::kParallel ? role : AxisRole::kWhole;
    case OpKind::reduce_min: return role == AxisRole::kMax ? AxisRole::kWhole : role;
    case OpKind::box_sumsq: {
      if (role != AxisRole::kParallel) return role;
      if (op.attrs.has("lengths")) return AxisRole::kWhole;  // a part already
      const bool whole_boxes = !box_bounds(split, in[0].size_of(axis), out[0].size_of(axis)).empty();
      return whole_boxes ? role : AxisRole::kWhole;
    }
    case OpKind::random:  // the key is no part of the result
      return in[0].has(axis) ? AxisRole::kWhole : role;
    case OpKind::fingerprint: {
      if (!in[0].has(axis)) return AxisRole::kWhole;  // the lanes
      if (in[0].axes.back().name != axis) return role;
      const int64_t per_word = numerics::fingerprint_per_word(ir::dtype_size(in[0].dtype));
      for (size_t c = 0; c + 1 < split.bounds.size(); ++c)
        if (split.bounds[c] % per_word != 0) return AxisRole::kWhole;
      return role;
    }
    default: return role;
  }
}

// Leaves nest in table order: only the outermost cut axis of a contraction can be joined over workers last.
bool outermost(const Placement& placement, const std::vector<std::string>& summed, const std::string& axis) {
  for (const auto& [name, count] : placement.leaves.axes) {
    if (name == axis) return true;
    if (count > 1 && listed(summed, name)) return false;
  }
  return true;
}

Status check_subtrees(const Placement& placement, const ir::Op& op, const std::string& axis,
                      const Split& split) {
  if (!split.leaves.empty()) return Status();
  const int64_t workers = placement.sharding.mesh.size_of(split.mesh_axis);
  return invalid_argument(fmt::format(
      "{}: axis \"{}\" is split over mesh axis \"{}\" of {} and summed over, but has {} feature leaves: each "
      "worker must hold one whole subtree of them; set numerics.leaves.{} to {} times a power of two",
      ir::op_name(op.kind), axis, split.mesh_axis, workers, placement.leaves.count(axis), axis, workers));
}

}  // namespace

Layout OpSplits::layout(const ir::Shape& shape) const {
  Layout out(shape.axes.size());
  for (size_t i = 0; i < out.size(); ++i)
    if (const auto it = axes.find(shape.axes[i].name); it != axes.end()) out[i] = it->second;
  return out;
}

int64_t box_length(int64_t size, int64_t boxes) { return std::max<int64_t>(1, (size + boxes - 1) / boxes); }

std::vector<int64_t> box_bounds(const Split& split, int64_t size, int64_t boxes) {
  const int64_t length = box_length(size, boxes);
  std::vector<int64_t> bounds{0};
  for (size_t c = 1; c < split.bounds.size(); ++c) {
    const bool last = c + 1 == split.bounds.size();
    if (!last && split.bounds[c] % length != 0) return {};
    const int64_t held = split.bounds[c] - split.bounds[c - 1];
    bounds.push_back(last ? boxes : split.bounds[c] / length);
    if (bounds[c] <= bounds[c - 1] || held < 1) return {};
  }
  return bounds;
}

// For each mesh axis, takes the first axis of the map that the op has and that can be split there: its role
// is not kWhole, no coordinate would be empty, and at most one axis is summed over, the outermost that leaves
// cut.
Result<OpSplits> op_splits(const Placement& placement, Role role, const ir::Op& op,
                           const std::vector<ir::Shape>& in, const std::vector<ir::Shape>& out) {
  OpSplits result;
  const std::vector<ir::Axis> axes = union_of(in, out);
  std::vector<std::string> summed;
  for (const ir::Axis& a : axes)
    if (ir::axis_role(op, in, out, a.name) == AxisRole::kSum) summed.push_back(a.name);
  for (const ir::Axis& m : placement.sharding.mesh.axes) {
    if (m.size == 1) continue;
    for (const auto& [name, mesh_axis] : placement.map(role)) {
      const auto axis =
          std::find_if(axes.begin(), axes.end(), [&](const ir::Axis& a) { return a.name == name; });
      if (mesh_axis != m.name || axis == axes.end() || result.axes.count(name) != 0) continue;
      if (!placement.may_split(role, name, axes)) continue;
      const Split split = placement.split(role, name, axis->size, m.name);
      const AxisRole r = role_of(op, in, out, name, split);
      if (r == AxisRole::kWhole) continue;
      // Too few leaves are an error, even when a worker would hold no index at all.
      const bool cut = placement.leaves.position(name) >= 0;
      if (split.leaves_some_empty() && (r != AxisRole::kSum || !cut || !split.leaves.empty())) continue;
      if (r == AxisRole::kSum) {
        if (!result.summed.empty() || !outermost(placement, summed, name)) continue;
        if (!ir::is_integer(out[0].dtype)) RETURN_IF_ERROR(check_subtrees(placement, op, name, split));
        result.summed = name;
      }
      if (r == AxisRole::kMax) result.maxed.push_back(name);
      result.axes[name] = split;
      break;
    }
  }
  return result;
}

}  // namespace ostro::spmd
