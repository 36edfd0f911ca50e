// Shape rules of collectives.
#include <fmt/format.h>

#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {
namespace {

// Part c is [bounds[c], bounds[c + 1]).
Status check_bounds(const Op& op, const std::vector<int64_t>& bounds, int64_t size) {
  bool ascending = bounds.size() >= 2 && bounds.front() == 0 && bounds.back() == size;
  for (size_t c = 1; ascending && c < bounds.size(); ++c) ascending = bounds[c - 1] <= bounds[c];
  if (ascending) return Status();
  return fail(op, fmt::format("bounds [{}] do not cut an axis of {}", fmt::join(bounds, ", "), size));
}

// Peers without a leaf may be left out, but no peer may lie in two subtrees.
Status check_subtrees(const Op& op, const std::vector<int64_t>& firsts, const std::vector<int64_t>& counts,
                      int64_t peers) {
  if (firsts.empty() || firsts.size() != counts.size())
    return fail(op, fmt::format("{} firsts and {} counts", firsts.size(), counts.size()));
  int64_t end = 0;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const int64_t first = firsts[i], count = counts[i];
    if (first < end || first >= peers || count < 1 || count > peers - first)
      return fail(op, fmt::format("the subtree of {} leaves from {} on is not behind the one before, or not "
                                  "within {} peers",
                                  count, first, peers));
    end = first + count;
  }
  return Status();
}

// The parts of `whole`, the size of the cut axis; `kept` is one worker's.
Status check_parts(const Op& op, int64_t whole, int64_t kept) {
  const auto& bounds = op.attrs.ints("bounds");
  RETURN_IF_ERROR(check_bounds(op, bounds, whole));
  for (size_t c = 1; c < bounds.size(); ++c)
    if (bounds[c] - bounds[c - 1] == kept) return Status();
  return fail(op, fmt::format("no part of the bounds [{}] has {} indices", fmt::join(bounds, ", "), kept));
}

Shapes exchange_leaves(const Op& op, In in) {
  Shape out = in[0];
  if (out.dtype != DType::f32) return fail(op, fmt::format("needs f32, not {}", out.str()));
  if (op.attrs.str("mesh_axes").empty()) return fail(op, "mesh_axes names no mesh axis");
  const std::string axis = op.attrs.str("axis", "");
  const auto& owners = op.attrs.ints("owners");
  const auto& firsts = op.attrs.ints("firsts");
  const int64_t part = op.attrs.i64("part");
  int64_t parts = 1;
  if (!axis.empty()) {
    ASSIGN_OR_RETURN(const int64_t at, need_axis(op, out, axis));
    const auto& bounds = op.attrs.ints("bounds");
    Axis& cut = out.axes[static_cast<size_t>(at)];
    RETURN_IF_ERROR(check_bounds(op, bounds, cut.size));
    parts = static_cast<int64_t>(bounds.size()) - 1;
    if (part >= 0 && part < parts)
      cut.size = bounds[static_cast<size_t>(part) + 1] - bounds[static_cast<size_t>(part)];
  }
  bool known = part >= 0 && part < parts, mine = false;
  for (const int64_t owner : owners) {
    known = known && owner >= 0 && owner < parts;
    mine = mine || owner == part;
  }
  if (!known || !mine)
    return fail(op,
                fmt::format("owners [{}] and part {} of {} parts: each owner is the number of a part, one "
                            "of them this worker's",
                            fmt::join(owners, ", "), part, parts));
  RETURN_IF_ERROR(check_subtrees(op, firsts, op.attrs.ints("counts"), static_cast<int64_t>(owners.size())));
  if (out.has("part")) return fail(op, fmt::format("{} has an axis \"part\" already", in[0].str()));
  out.axes.insert(out.axes.begin(), {"part", static_cast<int64_t>(firsts.size())});
  return std::vector<Shape>{out};
}

}  // namespace

Shapes collective(const Op& op, In in) {
  Shape out = in[0];
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::shard_slice:
    case OpKind::reduce_scatter_tree: {
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, out, op.attrs.str("axis")));
      const int64_t before = out.axes[static_cast<size_t>(at)].size, after = op.attrs.i64("size");
      out.axes[static_cast<size_t>(at)].size = after;
      if (op.kind == OpKind::all_gather) RETURN_IF_ERROR(check_parts(op, after, before));
      if (op.kind == OpKind::reduce_scatter_tree) RETURN_IF_ERROR(check_parts(op, before, after));
      return std::vector<Shape>{out};
    }
    case OpKind::exchange_leaves: return exchange_leaves(op, in);
    default:
      if (op.attrs.i64("workers") < 1)
        return fail(op, fmt::format("workers are 1 or more, not {}", op.attrs.i64("workers")));
      return std::vector<Shape>{out};
  }
}

}  // namespace ostro::ir::rules
