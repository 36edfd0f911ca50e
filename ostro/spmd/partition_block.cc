#include "ostro/spmd/partition_block.h"

#include <algorithm>

#include <fmt/format.h>

#include "ostro/base/check.h"
#include "ostro/numerics/tree.h"

namespace ostro::spmd {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::ValueId;

std::string key_of(const Layout& layout) {
  std::string key;
  for (const Split& s : layout) {
    key += s.mesh_axis + "[";
    for (int64_t b : s.bounds) key += std::to_string(b) + ",";
    key += "]";
  }
  return key;
}

Shape without_first(const Shape& s) { return Shape{s.dtype, {s.axes.begin() + 1, s.axes.end()}}; }

// Renames `axis` in a list attribute.
void rename_in(ir::Attrs& attrs, const char* list, const std::string& axis) {
  if (!attrs.has(list)) return;
  std::vector<std::string> names = attrs.strs(list);
  for (std::string& n : names)
    if (n == axis) n = part_name(axis);
  attrs.set(list, names);
}

}  // namespace

std::string part_name(const std::string& axis) { return axis + ".part"; }

// First gathers every axis that is split otherwise than in `to`, then takes this worker's slice of every axis
// that `to` splits. Moved values are remembered by value and layout, so two ops with one need share the
// collective.
Local BlockPartitioner::move(const Local& x, const Layout& to) {
  if (x.layout == to) return x;
  const auto key = std::pair(x.id, key_of(to));
  if (const auto it = moved_.find(key); it != moved_.end()) return {it->second, x.whole, to};
  Local now = x;
  for (size_t i = 0; i < to.size(); ++i) {
    const Split& from = now.layout[i];
    if (!from.split() || from == to[i]) continue;
    const ir::Axis& axis = x.whole.axes[i];
    now.id = builder_.add(
        OpKind::all_gather, {now.id},
        {{"axis", axis.name}, {"mesh_axis", from.mesh_axis}, {"bounds", from.bounds}, {"size", axis.size}});
    now.layout[i] = {};
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i].split() || now.layout[i].split()) continue;
    const ir::Axis& axis = x.whole.axes[i];
    const auto [start, size] = mine(to[i], axis.size);
    now.id =
        builder_.add(OpKind::shard_slice, {now.id},
                     {{"axis", axis.name}, {"mesh_axis", to[i].mesh_axis}, {"start", start}, {"size", size}});
    now.layout[i] = to[i];
  }
  moved_[key] = now.id;
  return {now.id, x.whole, to};
}

// Rewrites op by op in the order of the block; values[v] is this worker's part of the original value v. Every
// result is checked against the shape that its layout implies.
Result<Locals> BlockPartitioner::run(const ir::Block& block, const Locals& args) {
  Locals values(block.values.size());
  for (size_t i = 0; i < args.size(); ++i) values[static_cast<size_t>(block.params[i])] = args[i];
  for (const ir::Op& op : block.ops) {
    Locals in;
    std::vector<Shape> out;
    for (ValueId v : op.operands) in.push_back(values[static_cast<size_t>(v)]);
    for (ValueId v : op.results) out.push_back(block.shape(v));
    builder_.set_scope(op.scope);
    builder_.set_location(op.location);
    auto results = run_op(op, in, out);
    if (!results.ok())
      return op.location.empty() ? results.error() : results.error().with_context(op.location);
    for (size_t i = 0; i < out.size(); ++i) {
      const Local& r = (*results)[i];
      const Shape expected = local(r.layout, r.whole);
      OSTRO_CHECK(builder_.shape(r.id) == expected, "worker {}: {} gave {}, its layout says {}", rank_,
                  ir::op_name(op.kind), builder_.shape(r.id).str(), expected.str());
      values[static_cast<size_t>(op.results[i])] = r;
    }
  }
  Locals results;
  for (ValueId v : block.results) results.push_back(values[static_cast<size_t>(v)]);
  return results;
}

Result<Locals> BlockPartitioner::run_op(const ir::Op& op, const Locals& in, const std::vector<Shape>& out) {
  switch (op.kind) {
    case OpKind::scan: return run_scan(op, in, out);
    case OpKind::cond: return run_cond(op, in, out);
    case OpKind::custom:  // its derivative is part of the program already
      return run(op.regions[0], in);
    case OpKind::use: {
      // Cast first, then gather: the narrower type travels.
      const ValueId cast = builder_.add(op.kind, {in[0].id}, op.attrs);
      return Locals{move({cast, out[0], in[0].layout}, natural(out[0]))};
    }
    default:
      return ir::is_collective(op.kind)
                 ? Result<Locals>(invalid_argument(
                       fmt::format("{}: the program is already partitioned", ir::op_name(op.kind))))
                 : run_plain(op, in, out);
  }
}

// The op's attributes with the sizes of this worker's part, for ops that name sizes.
ir::Attrs BlockPartitioner::local_attrs(const ir::Op& op, const OpSplits& splits, const Locals& in) {
  ir::Attrs attrs = op.attrs;
  const auto local_size = [&](const std::string& axis, int64_t size) {
    const auto it = splits.axes.find(axis);
    return it == splits.axes.end() ? size : mine(it->second, size).second;
  };
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::broadcast:
    case OpKind::random: {
      const auto& names = op.attrs.strs("axes");
      std::vector<int64_t> sizes = op.attrs.ints("sizes");
      for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = local_size(names[i], sizes[i]);
      attrs.set("sizes", sizes);
      break;
    }
    case OpKind::iota:
    case OpKind::scatter_add:
    case OpKind::expert_outer:
    case OpKind::expert_outer_int8:
      attrs.set("size", local_size(op.attrs.str("axis"), op.attrs.i64("size")));
      break;
    case OpKind::box_sumsq: {
      const auto& names = op.attrs.strs("axes");
      std::vector<int64_t> cells = op.attrs.ints("cells"), lengths;
      bool told = false;  // box lengths must be given: those that follow from the part's size are wrong
      for (size_t i = 0; i < cells.size(); ++i) {
        const int64_t size = in[0].whole.size_of(names[i]);
        lengths.push_back(box_length(size, cells[i]));
        const auto it = splits.axes.find(names[i]);
        if (it == splits.axes.end()) continue;
        const Split boxes{it->second.mesh_axis, box_bounds(it->second, size, cells[i]), {}};
        cells[i] = mine(boxes, cells[i]).second;
        told |= box_length(mine(it->second, size).second, cells[i]) != lengths[i];
      }
      attrs.set("cells", cells);
      if (told) attrs.set("lengths", lengths);
      break;
    }
    default: break;
  }
  return attrs;
}

// Ops that read global indices (iota, gather, attention, random, ...) have an origin operand per such axis.
// Adds the first index of this worker's part to it, so that the op computes what it would there in the whole
// value.
void BlockPartitioner::shift_origins(const ir::Op& op, const OpSplits& splits, std::vector<ValueId>& operands,
                                     const Locals& in) {
  const auto shift = [&](size_t operand, const std::string& axis) {
    const auto it = splits.axes.find(axis);
    if (it == splits.axes.end()) return;
    const int64_t start = mine(it->second, 0).first;
    if (start == 0) return;
    ValueId& origin = operands[operand];
    const ValueId by = builder_.splat(static_cast<double>(start), builder_.shape(origin));
    origin = builder_.add(OpKind::add, {origin, by});
  };
  switch (op.kind) {
    case OpKind::iota: return shift(0, op.attrs.str("axis"));
    case OpKind::gather:
    case OpKind::scatter_add:
    case OpKind::cross_entropy: return shift(2, op.attrs.str("axis"));
    case OpKind::expert_dot:
    case OpKind::expert_outer: return shift(3, op.attrs.str("axis"));
    case OpKind::expert_dot_int8: return shift(5, op.attrs.str("axis"));
    case OpKind::expert_outer_int8:
      shift(3, op.attrs.str("axis"));
      for (size_t i = 0; i + 5 < operands.size(); ++i) shift(i + 5, in[1].whole.axes[i].name);
      return;
    case OpKind::cross_entropy_grad: return shift(6, op.attrs.str("axis"));
    case OpKind::attention: return shift(3, op.attrs.str("query"));
    case OpKind::attention_grad: return shift(7, op.attrs.str("query"));
    case OpKind::random: {
      const auto& axes = op.attrs.strs("axes");
      for (size_t i = 0; i < axes.size(); ++i) shift(i + 1, axes[i]);
      return;
    }
    case OpKind::quantize:
      for (size_t i = 0; i + 2 < operands.size(); ++i) shift(i + 2, in[0].whole.axes[i].name);
      return;
    case OpKind::fingerprint:
      for (size_t i = 0; i < in[0].whole.axes.size(); ++i) shift(i + 1, in[0].whole.axes[i].name);
      return;
    default: return;
  }
}

// Three steps: moves the operands to the layouts in which the op can run (op_splits), runs the op on the
// local parts, joins the results. A sum over a split axis goes through run_sum or an op of split_fused.cc; a
// maximum, a row of a split table and a fingerprint are joined here by an exact collective. The results end
// in their natural layout.
Result<Locals> BlockPartitioner::run_plain(const ir::Op& op, const Locals& in,
                                           const std::vector<Shape>& out) {
  std::vector<Shape> whole;
  for (const Local& x : in) whole.push_back(x.whole);
  ASSIGN_OR_RETURN(const OpSplits splits, op_splits(placement_, role_, op, whole, out));
  Locals moved;
  std::vector<ValueId> operands;
  for (const Local& x : in) {
    moved.push_back(move(x, splits.layout(x.whole)));
    operands.push_back(moved.back().id);
  }
  if (!splits.summed.empty()) {
    if (op.kind == OpKind::cross_entropy) return run_cross_entropy(op, moved, out, splits);
    if (op.kind == OpKind::attention_grad) return run_attention_grad(op, moved, out, splits);
    ASSIGN_OR_RETURN(const Local sum, run_sum(op, moved, out[0], splits));
    return Locals{move(sum, natural(out[0]))};
  }
  shift_origins(op, splits, operands, in);
  ASSIGN_OR_RETURN(std::vector<ValueId> ids,
                   builder_.try_add(op.kind, operands, local_attrs(op, splits, in), op.regions));
  builder_.block().ops.back().label = op.label;
  Locals results;
  for (size_t i = 0; i < out.size(); ++i) {
    Local r{ids[i], out[i], splits.layout(out[i])};
    if (op.kind == OpKind::box_sumsq)
      for (size_t a = 0; a < r.layout.size(); ++a)
        if (const ir::Axis& axis = out[i].axes[a]; r.layout[a].split())
          r.layout[a].bounds = box_bounds(r.layout[a], in[0].whole.size_of(axis.name), axis.size);
    for (const std::string& axis : splits.maxed)
      r.id = builder_.add(OpKind::all_reduce_max, {r.id}, over(splits.axes.at(axis).mesh_axis));
    r.id = select_row(op, r.id, splits);
    if (op.kind == OpKind::fingerprint)
      for (const auto& [axis, split] : splits.axes)
        r.id = builder_.add(OpKind::all_reduce_int, {r.id}, over(split.mesh_axis));
    results.push_back(move(r, natural(out[i])));
  }
  return results;
}

// One partial per leaf that this worker holds, the tree over them, then the tree over workers. On each leaf
// the axis is renamed to its part name, so that the op does not cut it into leaves again. Integers need no
// leaves: their sum does not depend on the order.
Result<Local> BlockPartitioner::run_sum(const ir::Op& op, const Locals& in, const Shape& out,
                                        const OpSplits& splits) {
  const std::string& axis = splits.summed;
  const Split& split = splits.axes.at(axis);
  const bool integer = ir::is_integer(out.dtype);
  std::vector<ValueId> operands;
  int64_t size = 0;  // of the whole axis
  for (const Local& x : in) {
    operands.push_back(x.id);
    if (x.whole.has(axis)) size = x.whole.size_of(axis);
  }
  shift_origins(op, splits, operands, in);
  ir::Attrs attrs = local_attrs(op, splits, in);
  // A bf16 result is rounded once, after all trees.
  if (op.kind == OpKind::dot || op.kind == OpKind::expert_dot) attrs.set("dtype", std::string("f32"));
  if (!integer) {
    rename_in(attrs, "over", axis);
    rename_in(attrs, "axes", axis);
  }
  if (op.kind == OpKind::cross_entropy_sum) attrs.set("axis", part_name(axis));
  if (integer) {
    const ValueId sum = builder_.add(op.kind, operands, attrs);
    return Local{builder_.add(OpKind::all_reduce_int, {sum}, over(split.mesh_axis)), out, splits.layout(out)};
  }
  std::vector<ValueId> partials;
  for (const numerics::LeafBounds& leaf : leaves_here(axis, split, size)) {
    if (op.kind == OpKind::cross_entropy_sum && leaf.size() == 0) {  // the op itself needs a class
      partials.push_back(builder_.splat(0.0, local(splits.layout(out), out)));
      continue;
    }
    std::vector<ValueId> parts;
    for (ValueId v : operands) parts.push_back(leaf_of(v, axis, leaf));
    partials.push_back(builder_.add(op.kind, parts, attrs));
  }
  Local sum = tree_over_workers(tree(partials), out, splits);
  sum.id = select_row(op, sum.id, splits);
  return sum;
}

ValueId BlockPartitioner::select_row(const ir::Op& op, ValueId x, const OpSplits& splits) {
  if (op.kind != OpKind::gather && op.kind != OpKind::expert_dot && op.kind != OpKind::expert_dot_int8)
    return x;
  const auto it = splits.axes.find(op.attrs.str("axis"));
  if (it == splits.axes.end()) return x;
  return builder_.add(OpKind::all_reduce_bits, {x}, over(it->second.mesh_axis));
}

std::vector<numerics::LeafBounds> BlockPartitioner::leaves_here(const std::string& axis, const Split& split,
                                                                int64_t size) const {
  const auto all = numerics::leaf_bounds(axis, size, placement_.leaves.count(axis));
  const auto c = static_cast<size_t>(coordinate(placement_.sharding.mesh, rank_, split.mesh_axis));
  const int64_t first = mine(split, size).first;
  std::vector<numerics::LeafBounds> here;
  for (int64_t i = split.leaves[c]; i < split.leaves[c + 1]; ++i) {
    const numerics::LeafBounds& leaf = all[static_cast<size_t>(i)];
    here.push_back({leaf.begin - first, leaf.end - first});
  }
  return here;
}

ValueId BlockPartitioner::leaf_of(ValueId x, const std::string& axis, const numerics::LeafBounds& leaf) {
  const Shape shape = builder_.shape(x);
  if (!shape.has(axis)) return x;
  if (shape.size_of(axis) != leaf.size())
    x = builder_.add(OpKind::slice, {x}, {{"axis", axis}, {"start", leaf.begin}, {"size", leaf.size()}});
  return builder_.rename(x, {axis}, {part_name(axis)});
}

ValueId BlockPartitioner::tree(const std::vector<ValueId>& partials) {
  return numerics::tree_reduce(
      static_cast<int64_t>(partials.size()), [&](int64_t i) { return partials[static_cast<size_t>(i)]; },
      [&](ValueId a, ValueId b) { return builder_.add(OpKind::add, {a, b}); });
}

// If the result is split over the workers of the sum, each keeps only its part of the tree (reduce-scatter);
// otherwise all get all of it (all-reduce). Both add in the same order.
Local BlockPartitioner::tree_over_workers(ValueId partial, const Shape& out, const OpSplits& splits) {
  const std::string& mesh_axis = splits.axes.at(splits.summed).mesh_axis;
  const int64_t leaves = placement_.leaves.count(splits.summed);
  Local result{partial, out, splits.layout(out)};
  const Layout wanted = natural(out);
  size_t kept = 0;  // the axis of the result that the same workers share, if any
  while (kept < wanted.size() && wanted[kept].mesh_axis != mesh_axis) ++kept;
  if (kept == wanted.size()) {
    ir::Attrs attrs = over(mesh_axis);
    attrs.set("leaves", leaves);
    result.id = builder_.add(OpKind::all_reduce_tree, {partial}, attrs);
  } else {
    const ir::Axis& scattered = out.axes[kept];
    result.id = builder_.add(OpKind::reduce_scatter_tree, {partial},
                             {{"axis", scattered.name},
                              {"mesh_axis", mesh_axis},
                              {"bounds", wanted[kept].bounds},
                              {"leaves", leaves},
                              {"size", mine(wanted[kept], scattered.size).second}});
    result.layout[kept] = wanted[kept];
  }
  result.id = builder_.cast(result.id, out.dtype);
  return result;
}

// Rewrites a region with a partitioner of its own, whose parameters and results have the given layouts. On an
// error sets `status` and returns a block without results.
ir::Block BlockPartitioner::region(const ir::Block& body, const Locals& outer,
                                   const std::vector<Layout>& params, const std::vector<Layout>& results,
                                   Status& status) {
  ir::Block block;
  BlockPartitioner inner(placement_, role_, rank_, block);
  Locals args;
  for (size_t i = 0; i < outer.size(); ++i) {
    const Shape& whole = body.shape(body.params[i]);
    args.push_back({block.add_param(local(params[i], whole)), whole, params[i]});
  }
  auto values = inner.run(body, args);
  if (!values.ok()) {
    status = values.error();
    return block;
  }
  for (size_t i = 0; i < results.size(); ++i)
    block.results.push_back(inner.move((*values)[i], results[i]).id);
  return block;
}

// Layouts at the loop's border: carries have their natural layout, so that they enter and leave an iteration
// alike; scanned operands are gathered along the loop's axis only; constants keep their layout. A gradient
// that is exchanged has the layout of its worker's leaf in the body; add_exchange() inserts the exchange
// behind the op that makes it, and the loop stacks the owners' sums.
Result<Locals> BlockPartitioner::run_scan(const ir::Op& op, const Locals& in, const std::vector<Shape>& out) {
  const ir::Block& body = op.regions[0];
  const auto consts = static_cast<size_t>(op.attrs.i64("consts")),
             carries = static_cast<size_t>(op.attrs.i64("carries"));
  Locals moved;
  std::vector<ValueId> operands;
  std::vector<Layout> params, results;
  for (size_t i = 0; i < in.size(); ++i) {
    Local x = in[i];
    if (i >= consts && i < consts + carries) {
      x = move(x, natural(x.whole));
      params.push_back(x.layout);
    } else if (i >= consts + carries) {
      Layout to = x.layout;
      to[0] = {};  // each iteration reads its slice: whole
      x = move(x, to);
      params.emplace_back(to.begin() + 1, to.end());
    } else {
      params.push_back(x.layout);  // a parameter stays split until the body's `use` gathers it
    }
    operands.push_back(x.id);
    moved.push_back(std::move(x));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const ExchangedGradient* gradient = exchanged(op.results[i]);
    results.push_back(gradient != nullptr ? gradient->sent
                                          : natural(i < carries ? out[i] : without_first(out[i])));
  }
  Status status;
  ir::Block block = region(body, moved, params, results, status);
  RETURN_IF_ERROR(status);
  for (size_t i = 0; i < out.size(); ++i) {
    if (const ExchangedGradient* gradient = exchanged(op.results[i])) {
      ASSIGN_OR_RETURN(block.results[i], add_exchange(block, block.results[i], *exchange_, *gradient,
                                                      placement_.sharding.mesh, rank_));
    }
  }
  ASSIGN_OR_RETURN(std::vector<ValueId> ids,
                   builder_.try_add(op.kind, operands, op.attrs, {std::move(block)}));
  Locals locals;
  for (size_t i = 0; i < out.size(); ++i) {
    if (const ExchangedGradient* gradient = exchanged(op.results[i])) {
      locals.push_back({ids[i], gradient->result, gradient->layout});
      continue;
    }
    Layout layout = results[i];
    if (i >= carries) layout.insert(layout.begin(), Split());
    locals.push_back(move({ids[i], out[i], layout}, natural(out[i])));
  }
  return locals;
}

const ExchangedGradient* BlockPartitioner::exchanged(ValueId v) const {
  if (exchange_ == nullptr) return nullptr;
  const auto at = exchange_->in_scans.find(v);
  return at == exchange_->in_scans.end() ? nullptr : &*exchange_->results[at->second];
}

// Captured operands keep their layout; both branches return natural layouts, so that their results agree. All
// workers take the same branch, because the predicate is a scalar and every worker has it.
Result<Locals> BlockPartitioner::run_cond(const ir::Op& op, const Locals& in, const std::vector<Shape>& out) {
  std::vector<Layout> params, results;
  std::vector<ValueId> operands;
  for (const Local& x : in) operands.push_back(x.id);
  const Locals passed(in.begin() + 1, in.end());
  for (const Local& x : passed) params.push_back(x.layout);
  for (const Shape& s : out) results.push_back(natural(s));
  Status status;
  std::vector<ir::Block> blocks;
  for (const ir::Block& branch : op.regions) {
    blocks.push_back(region(branch, passed, params, results, status));
    RETURN_IF_ERROR(status);
  }
  ASSIGN_OR_RETURN(std::vector<ValueId> ids,
                   builder_.try_add(op.kind, operands, op.attrs, std::move(blocks)));
  Locals locals;
  for (size_t i = 0; i < out.size(); ++i) locals.push_back({ids[i], out[i], results[i]});
  return locals;
}

}  // namespace ostro::spmd
