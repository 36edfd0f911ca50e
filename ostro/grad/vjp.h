// apply_rule: the VJP rule of every op: from the cotangents of its results, it makes contributions to the
// cotangents of its operands. Private to the room: joint.cc drives the rules.
#pragma once

#include <functional>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/builder.h"

namespace ostro::grad_internal {

// The inputs of a rule and the functions that it calls. A cotangent has the shape and dtype of its value (f32
// for bf16 values that come from `use`); -1 stands for zero.
struct RuleContext {
  ir::Builder& b;
  const ir::Op& op;                              // ids in b's block
  std::vector<ir::ValueId> ct;                   // per result
  std::function<bool(size_t)> wanted;            // whether operand i is differentiated
  std::function<void(size_t, ir::ValueId)> add;  // contribution to operand i; ignored unless wanted

  const ir::Shape& in(size_t i) const { return b.shape(op.operands[i]); }
  const ir::Shape& out(size_t i = 0) const { return b.shape(op.results[i]); }
  ir::ValueId x(size_t i) const { return op.operands[i]; }
  ir::ValueId y(size_t i = 0) const { return op.results[i]; }
  // A literal broadcast to v's axes, in v's dtype (f32 for bf16).
  ir::ValueId lit(double value, ir::ValueId v);
  ir::ValueId mul(ir::ValueId a, ir::ValueId c) { return b.add(ir::OpKind::mul, {a, c}); }
  ir::ValueId div(ir::ValueId a, ir::ValueId c) { return b.add(ir::OpKind::div, {a, c}); }
  ir::ValueId add2(ir::ValueId a, ir::ValueId c) { return b.add(ir::OpKind::add, {a, c}); }
  ir::ValueId sub(ir::ValueId a, ir::ValueId c) { return b.add(ir::OpKind::sub, {a, c}); }
  ir::ValueId neg(ir::ValueId a) { return b.add(ir::OpKind::neg, {a}); }
  ir::ValueId select(ir::ValueId p, ir::ValueId a, ir::ValueId c) {
    return b.add(ir::OpKind::select, {p, a, c});
  }
};

// Applies the rule of an op without regions. Error: the op has no derivative (with its name and call site).
Status apply_rule(RuleContext& c);

// The rules by family; apply_rule() chooses.
Status elementwise_rule(RuleContext& c);
Status layout_rule(RuleContext& c);
Status indexed_rule(RuleContext& c);
Status reduce_rule(RuleContext& c);
Status fused_rule(RuleContext& c);

Error no_derivative(const ir::Op& op);

// False for ops whose derivative is always zero or not defined: floor, argmax, random ...
bool has_derivative(ir::OpKind kind);

}  // namespace ostro::grad_internal
