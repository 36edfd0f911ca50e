// The fused ops that sum over an axis and do more than that, with that axis split over workers. Each is
// divided into the steps of its clause (docs/spec/numerics.md N9, N11), so that the bits do not change.
#include <cmath>

#include "ostro/spmd/partition_block.h"

namespace ostro::spmd {

using ir::OpKind;
using ir::Shape;
using ir::ValueId;

// The maximum, the sum of exponentials and the target's logit are joined over workers, the rest is done by
// every worker. So no worker has the logits of the whole vocabulary.
Locals BlockPartitioner::run_cross_entropy(const ir::Op& op, const Locals& in, const std::vector<Shape>& out,
                                           const OpSplits& splits) {
  const std::string axis = splits.summed;
  const Split& split = splits.axes.at(axis);
  const ir::Attrs over_mesh = over(split.mesh_axis);
  std::vector<ValueId> operands;
  for (const Local& x : in) operands.push_back(x.id);
  shift_origins(op, splits, operands, in);
  const ValueId logits = operands[0];
  const auto add = [&](OpKind kind, ValueId a, ValueId b) { return builder_.add(kind, {a, b}); };

  const ValueId local_max = builder_.add(OpKind::reduce_max, {logits}, {{"axes", std::vector{axis}}});
  const ValueId max = builder_.add(OpKind::all_reduce_max, {local_max}, over_mesh);
  const Shape row = builder_.shape(max);
  const ValueId zero = builder_.splat(0.0, row);
  const ValueId m = add(OpKind::add, max, zero);

  std::vector<ValueId> partials;
  for (const numerics::LeafBounds& leaf : leaves_here(axis, split, in[0].whole.size_of(axis))) {
    const ValueId part = leaf.size() == 0
                             ? zero
                             : builder_.add(OpKind::cross_entropy_sum, {leaf_of(logits, axis, leaf), m},
                                            {{"axis", part_name(axis)}});
    partials.push_back(part);
  }
  ir::Attrs joined = over_mesh;
  joined.set("leaves", placement_.leaves.count(axis));
  const ValueId l = builder_.add(OpKind::all_reduce_tree, {tree(partials)}, joined);
  const ValueId r = add(OpKind::div, builder_.splat(1.0, row), l);
  const ValueId lse = add(OpKind::add, m, builder_.add(OpKind::log, {l}));

  // A worker without the target has +0, whose bits are zero; so has every worker for a target outside.
  const ValueId found = builder_.add(OpKind::gather, {logits, operands[1], operands[2]}, {{"axis", axis}});
  const ValueId logit = builder_.add(OpKind::all_reduce_bits, {found}, over_mesh);
  ValueId loss = add(OpKind::sub, lse, logit);
  const auto z = static_cast<float>(op.attrs.f64("z", 0.0));
  if (std::abs(z) >= 0x1p-126f) {  // a denormal is zero (N0)
    const ValueId weighted = add(OpKind::mul, builder_.splat(static_cast<double>(z), row), lse);
    loss = add(OpKind::add, loss, add(OpKind::mul, weighted, lse));
  }
  Locals results;
  const ValueId values[] = {loss, m, r, lse};
  for (size_t i = 0; i < out.size(); ++i)
    results.push_back(move({values[i], out[i], splits.layout(out[i])}, natural(out[i])));
  return results;
}

// dk, dv and the sink's gradient are one partial per leaf of queries, then the tree; dk is scaled after it.
// dq needs no other worker: all keys are here.
Locals BlockPartitioner::run_attention_grad(const ir::Op& op, const Locals& in, const std::vector<Shape>& out,
                                            const OpSplits& splits) {
  const std::string query = splits.summed;
  const Split& split = splits.axes.at(query);
  constexpr size_t kOrigin = 7;  // the operand with the position of the first query
  std::vector<ValueId> operands;
  for (const Local& x : in) operands.push_back(x.id);
  shift_origins(op, splits, operands, in);
  ir::Attrs attrs = op.attrs;
  attrs.set("query", part_name(query));
  attrs.set("partial", int64_t{1});
  const bool scaled = op.attrs.i64("partial", 0) == 0;

  std::vector<ValueId> dq;
  std::vector<std::vector<ValueId>> partials(out.size());
  for (const numerics::LeafBounds& leaf : leaves_here(query, split, in[0].whole.size_of(query))) {
    if (leaf.size() == 0) {  // a +0 operand of the trees
      for (size_t i = 1; i < out.size(); ++i)
        partials[i].push_back(builder_.splat(0.0, local(splits.layout(out[i]), out[i])));
      continue;
    }
    std::vector<ValueId> parts;
    for (ValueId v : operands) parts.push_back(leaf_of(v, query, leaf));
    if (leaf.begin > 0) {
      const ValueId by = builder_.splat(static_cast<double>(leaf.begin), builder_.shape(parts[kOrigin]));
      parts[kOrigin] = builder_.add(OpKind::add, {parts[kOrigin], by});
    }
    const std::vector<ValueId> ids = builder_.add_n(op.kind, parts, attrs);
    dq.push_back(builder_.rename(ids[0], {part_name(query)}, {query}));
    for (size_t i = 1; i < ids.size(); ++i) partials[i].push_back(ids[i]);
  }
  const ValueId whole_dq = dq.size() == 1 ? dq[0] : builder_.add(OpKind::concat, dq, {{"axis", query}});
  Locals results{{whole_dq, out[0], splits.layout(out[0])}};
  for (size_t i = 1; i < out.size(); ++i) {
    Local sum = tree_over_workers(tree(partials[i]), out[i], splits);
    const Shape shape = builder_.shape(sum.id);
    const auto scale = static_cast<double>(static_cast<float>(op.attrs.f64("scale")));
    if (i == 1 && scaled) sum.id = builder_.add(OpKind::mul, {sum.id, builder_.splat(scale, shape)});
    if (i <= 2) sum.id = builder_.add(OpKind::add, {sum.id, builder_.splat(0.0, shape)});
    results.push_back(std::move(sum));
  }
  for (size_t i = 0; i < out.size(); ++i) results[i] = move(results[i], natural(out[i]));
  return results;
}

}  // namespace ostro::spmd
