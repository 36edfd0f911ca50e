#include "ostro/spmd/leaf_exchange.h"

#include <algorithm>

#include <fmt/format.h>

#include "ostro/ir/program/op_table.h"

namespace ostro::spmd {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

// The scan of which v is a stacked result, if the program does nothing else with v. (Differentiation puts no
// op between the scan and the result of the program.)
const Op* stacking_scan(const ir::Block& body, ValueId v) {
  auto uses = std::count(body.results.begin(), body.results.end(), v);
  const Op* scan = nullptr;
  for (const Op& op : body.ops) {
    uses += std::count(op.operands.begin(), op.operands.end(), v);
    const auto at = std::find(op.results.begin(), op.results.end(), v) - op.results.begin();
    if (op.kind == OpKind::scan && at < static_cast<int64_t>(op.results.size()) &&
        at >= op.attrs.i64("carries"))
      scan = &op;
  }
  return uses == 1 ? scan : nullptr;
}

// The axis of a gradient that its owners share. -1: every worker owns all of it.
int64_t owned_axis(const ExchangedGradient& g) {
  for (size_t i = 0; i < g.owned.size(); ++i)
    if (!(g.owned[i] == g.sent[i])) return static_cast<int64_t>(i);
  return -1;
}

template <typename T>
void drop_first(std::vector<T>& list) {
  list.erase(list.begin());
}

}  // namespace

// A gradient that a scan stacks is exchanged slice by slice inside the scan, so that the exchange of one
// layer runs while the next is computed. This needs one owner per slice, so not a split over the layers. The
// result gets an axis "part", one index per subtree of the round, because subtrees of different rounds are
// joined later.
Result<ExchangePlan> plan_exchange(const ir::Program& program, const Placement& placement,
                                   const std::vector<Role>& roles, const LeafExchange& leaves) {
  ExchangePlan plan{leaves, fmt::format("{}", fmt::join(placement.leaf_axes, "*")), {}, {}};
  if (placement.leaf_axes.empty()) return invalid_argument("gradients are exchanged, but no axis has leaves");
  plan.results.resize(roles.size());
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != Role::kGradient) continue;
    const ValueId v = program.body.results[i];
    ExchangedGradient g;
    g.shape = program.body.shape(v);
    const std::string what =
        i < program.result_names.size() ? program.result_names[i] : fmt::format("result {}", i);
    if (g.shape.dtype != ir::DType::f32)
      return invalid_argument(fmt::format("the gradient {} is {}, not f32", what, g.shape.str()));
    g.sent = placement.layout(Role::kGradient, g.shape);
    g.owned = placement.layout(Role::kParameter, g.shape);
    const auto cut = std::count_if(g.owned.begin(), g.owned.end(),
                                   [&](const Split& s) { return s.over(placement.leaf_axes); });
    if (cut > 1)
      return invalid_argument(fmt::format(
          "the gradient {}, {}, is split over {} mesh axes that carry leaves; it can be split over one", what,
          g.shape.str(), cut));
    g.result = g.shape;
    g.layout = g.owned;
    // Layers that different workers own have no owner in common for one slice.
    g.in_scan = stacking_scan(program.body, v) != nullptr && !g.owned[0].split();
    if (g.in_scan) {
      plan.in_scans[v] = i;
      drop_first(g.shape.axes);
      drop_first(g.sent);
      drop_first(g.owned);
    }
    const int64_t at = g.in_scan ? 1 : 0;
    g.result.axes.insert(g.result.axes.begin() + at, {"part", static_cast<int64_t>(leaves.firsts.size())});
    g.layout.insert(g.layout.begin() + at, Split());
    plan.results[i] = std::move(g);
  }
  return plan;
}

// Inserts the op directly behind the one that makes x, not at the end of the block: it can then overlap with
// what follows.
Result<ValueId> add_exchange(ir::Block& block, ValueId x, const ExchangePlan& plan,
                             const ExchangedGradient& gradient, const ir::Mesh& mesh, int64_t rank) {
  const auto made = std::find_if(block.ops.begin(), block.ops.end(), [&](const Op& op) {
    return std::find(op.results.begin(), op.results.end(), x) != op.results.end();
  });
  Op op{OpKind::exchange_leaves, {x}, {}, {}, {}, "", "", ""};
  if (made != block.ops.end()) {
    op.scope = made->scope;
    op.location = made->location;
  }
  std::string mesh_axis;  // its coordinate decides the part that a worker owns
  if (const int64_t at = owned_axis(gradient); at >= 0) {
    const Split& split = gradient.owned[static_cast<size_t>(at)];
    mesh_axis = split.mesh_axis;
    op.attrs.set("axis", gradient.shape.axes[static_cast<size_t>(at)].name);
    op.attrs.set("bounds", split.bounds);
  }
  std::vector<int64_t> owners;
  for (const int64_t peer : mesh.peers(rank, plan.mesh_axes))
    owners.push_back(coordinate(mesh, peer, mesh_axis));
  op.attrs.set("mesh_axes", plan.mesh_axes);
  op.attrs.set("owners", owners);
  op.attrs.set("part", coordinate(mesh, rank, mesh_axis));
  op.attrs.set("firsts", plan.leaves.firsts);
  op.attrs.set("counts", plan.leaves.counts);
  const Shape in = block.shape(x);
  ASSIGN_OR_RETURN(const std::vector<Shape> shapes, ir::infer_shapes(op, std::span(&in, 1)));
  const ValueId kept = block.add_value(shapes[0]);
  op.results = {kept};
  block.ops.insert(made == block.ops.end() ? block.ops.begin() : made + 1, std::move(op));
  return kept;
}

}  // namespace ostro::spmd
