// VJP rules of reductions, dot, attention and cross-entropy.
#include <fmt/format.h>

#include "ostro/grad/vjp.h"
#include "ostro/ir/program/product_rule.h"

namespace ostro::grad_internal {

using ir::Axis;
using ir::DType;
using ir::OpKind;
using ir::ValueId;

namespace {

// Returns the cotangent of x from the cotangents of the rows of `expert`. A row of x that several of them
// read gets their serial sum. The axes are in x's order.
ValueId sum_to_rows(ir::Builder& b, ValueId rows, const ir::Shape& expert, const ir::Shape& x) {
  std::vector<std::string> repeated;
  for (const Axis& a : expert.axes)
    if (!x.has(a.name)) repeated.push_back(a.name);
  if (!repeated.empty()) rows = b.sum(rows, repeated, "serial");
  return b.transpose(rows, x.names());
}

// Axes of the operand that `expert` does not have, in the operand's order.
std::vector<std::string> axes_of_a_row(const ir::Shape& operand, const ir::Shape& expert) {
  std::vector<std::string> names;
  for (const Axis& a : operand.axes)
    if (!expert.has(a.name)) names.push_back(a.name);
  return names;
}

// The attributes with the rule of the product that is differentiated (numerics.md N23).
ir::Attrs with_rule(const RuleContext& c, ir::Attrs attrs) {
  ir::copy_rule(c.op.attrs, attrs);
  return attrs;
}

ValueId dot(RuleContext& c, ValueId x, ValueId y, std::vector<std::string> over) {
  return c.b.add(OpKind::dot, {x, y},
                 with_rule(c, {{"over", std::move(over)}, {"dtype", std::string("f32")}}));
}

ValueId expert_dot(RuleContext& c, ValueId x, ValueId w, std::vector<std::string> over) {
  return c.b.add(
      OpKind::expert_dot, {x, w, c.x(2), c.x(3)},
      with_rule(
          c, {{"axis", c.op.attrs.str("axis")}, {"over", std::move(over)}, {"dtype", std::string("f32")}}));
}

// expert_dot(x, w) and expert_outer(a, b) are each other's derivatives: dx is an expert_dot of the cotangent
// with w, dw an expert_outer of x and the cotangent, and both gradients of an expert_outer are expert_dots
// with its cotangent.
Status expert_rule(RuleContext& c) {
  ir::Builder& b = c.b;
  const ir::Shape expert = c.in(2), first = c.in(0), second = c.in(1);
  const ValueId ct = b.cast(c.ct[0], first.dtype);
  if (c.op.kind == OpKind::expert_dot) {
    const std::string& axis = c.op.attrs.str("axis");
    if (c.wanted(0)) {
      std::vector<std::string> over;  // the axes that only w has
      for (const Axis& a : second.axes)
        if (a.name != axis && !first.has(a.name)) over.push_back(a.name);
      c.add(0, sum_to_rows(b, expert_dot(c, ct, c.x(1), over), expert, first));
    }
    if (c.wanted(1)) {
      const ValueId dw = b.add(OpKind::expert_outer, {c.x(0), ct, c.x(2), c.x(3)},
                               with_rule(c, {{"axis", axis}, {"size", second.size_of(axis)}}));
      c.add(1, b.transpose(dw, second.names()));
    }
    return Status();
  }
  for (size_t i : {size_t{0}, size_t{1}})
    if (c.wanted(i)) {
      const ir::Shape other = i == 0 ? second : first;
      const ValueId rows = expert_dot(c, c.x(1 - i), ct, axes_of_a_row(other, expert));
      c.add(i, sum_to_rows(b, rows, expert, c.in(i)));
    }
  return Status();
}

}  // namespace

Status reduce_rule(RuleContext& c) {
  ir::Builder& b = c.b;
  switch (c.op.kind) {
    case OpKind::sum:
    case OpKind::tree_sum: {
      // Cast before the broadcast: the f64 cotangent of a sum is rounded once to f32 for f32 operands.
      const std::vector<Axis> axes = c.in(0).axes;
      const ValueId ct = b.cast(c.ct[0], c.in(0).dtype == DType::f64 ? DType::f64 : DType::f32);
      c.add(0, b.broadcast(ct, axes));
      return Status();
    }
    case OpKind::reduce_max:
    case OpKind::reduce_min: {
      // Shared equally among ties: ct / count where x equals the result.
      const std::vector<Axis> axes = c.in(0).axes;
      const ValueId at = b.add(OpKind::eq, {c.x(0), b.broadcast(c.y(), axes)});
      const ValueId count = b.add(OpKind::sum, {b.cast(at, DType::f32)}, {{"axes", c.op.attrs.strs("axes")}});
      const ValueId share = b.broadcast(c.div(c.ct[0], b.cast(count, b.shape(c.ct[0]).dtype)), axes);
      c.add(0, c.select(at, share, b.splat(0, b.shape(share))));
      return Status();
    }
    case OpKind::dot: {
      // da contracts the cotangent with b over the axes only b has, in b's order; db contracts a with it over
      // the axes only a has, in a's order. Both operands have one dtype: a bf16 dot's cotangent is rounded to
      // bf16 first.
      const std::vector<std::string> a_names = c.in(0).names(), b_names = c.in(1).names();
      std::vector<std::string> only_a, only_b;
      for (const auto& n : a_names)
        if (!c.in(1).has(n)) only_a.push_back(n);
      for (const auto& n : b_names)
        if (!c.in(0).has(n)) only_b.push_back(n);
      const ValueId ct = b.cast(c.ct[0], c.in(0).dtype);
      if (c.wanted(0)) c.add(0, b.transpose(dot(c, ct, c.x(1), only_b), a_names));
      if (c.wanted(1)) c.add(1, b.transpose(dot(c, c.x(0), ct, only_a), b_names));
      return Status();
    }
    case OpKind::expert_dot:
    case OpKind::expert_outer: return expert_rule(c);
    default: return no_derivative(c.op);
  }
}

Status fused_rule(RuleContext& c) {
  ir::Builder& b = c.b;
  if (c.op.kind == OpKind::attention) {
    if (c.ct[1] >= 0 || c.ct[2] >= 0)
      return unsupported(fmt::format("attention's m and r have no derivative ({})", c.op.location));
    std::vector<ValueId> operands{
        c.x(0), c.x(1), c.x(2), c.y(0), c.y(1), c.y(2), b.cast(c.ct[0], c.out(0).dtype)};
    operands.insert(operands.end(), c.op.operands.begin() + 3, c.op.operands.end());
    const auto grads = b.add_n(OpKind::attention_grad, operands, c.op.attrs);
    for (size_t i = 0; i < 3; ++i) c.add(i, grads[i]);
    if (grads.size() > 3) c.add(c.op.operands.size() - 1, grads[3]);
    return Status();
  }
  if (c.op.kind == OpKind::cross_entropy) {
    if (c.ct[1] >= 0 || c.ct[2] >= 0 || c.ct[3] >= 0)
      return unsupported(fmt::format("cross_entropy's m, r and lse have no derivative ({})", c.op.location));
    ir::Attrs attrs = c.op.attrs;
    attrs.set("dtype", std::string("f32"));
    c.add(0, b.add(OpKind::cross_entropy_grad, {c.x(0), c.x(1), c.y(1), c.y(2), c.y(3), c.ct[0], c.x(2)},
                   std::move(attrs)));
    return Status();
  }
  return no_derivative(c.op);
}

bool has_derivative(OpKind k) {
  switch (k) {
    case OpKind::floor:
    case OpKind::constant:
    case OpKind::iota:
    case OpKind::random:
    case OpKind::fold_in:
    case OpKind::argmax:
    case OpKind::fingerprint:
    case OpKind::dequantize:  // stored values that no training moves
      return false;
    default: return true;
  }
}

Error no_derivative(const ir::Op& op) {
  return unsupported(fmt::format("{} has no derivative ({}); use stop_gradient or custom_vjp",
                                 ir::op_name(op.kind), op.location));
}

Status apply_rule(RuleContext& c) {
  const OpKind k = c.op.kind;
  if (k == OpKind::paged_write || k == OpKind::paged_attention)
    return unsupported(
        fmt::format("{} has no derivative: it is for inference only ({})", ir::op_name(k), c.op.location));
  if (ir::is_elementwise(k)) return elementwise_rule(c);
  if (k >= OpKind::broadcast && k <= OpKind::reverse) return layout_rule(c);
  if (k >= OpKind::dynamic_slice && k <= OpKind::top_k) return indexed_rule(c);
  if (k >= OpKind::sum && k <= OpKind::expert_outer) return reduce_rule(c);
  return fused_rule(c);
}

}  // namespace ostro::grad_internal
