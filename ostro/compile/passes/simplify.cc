// simplify: removes ops that change nothing, also for NaN and denormals: layout ops, casts and double
// negations without effect, and x * 1 where x cannot be a denormal (the product would flush it to zero). It
// never removes x + 0, reassociates, or replaces x / c by x * (1 / c).
#include <algorithm>

#include "ostro/compile/passes/pass.h"
#include "ostro/compile/passes/rewrite.h"
#include "ostro/ir/program/product_rule.h"

namespace ostro::compile {
namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

// Results that cannot hold a denormal: arithmetic flushed it. The rule of tensor cores keeps them (N23).
bool flushes(const Op& op) {
  switch (op.kind) {
    case OpKind::exp:
    case OpKind::log:
    case OpKind::tanh:
    case OpKind::sqrt:
    case OpKind::rsqrt:
    case OpKind::sigmoid:
    case OpKind::add:
    case OpKind::sub:
    case OpKind::mul:
    case OpKind::div: return true;
    case OpKind::dot:
    case OpKind::expert_dot:
    case OpKind::expert_outer: return !ir::is_tc16(op.attrs);
    default: return false;
  }
}

class Simplifier {
 public:
  explicit Simplifier(Block& block) : block_(block), now_(block.values.size()), def_(definitions(block)) {}

  void run() {
    for (Op& op : block_.ops) {
      now_.apply(op.operands);
      for (Block& region : op.regions) Simplifier(region).run();
      if (op.results.size() != 1) continue;
      const ValueId same = identity(op);
      if (same >= 0) now_.replace(op.results[0], same);
    }
    now_.apply(block_.results);
  }

 private:
  const Op* def(ValueId v) const {
    const int32_t d = def_[static_cast<size_t>(v)];
    return d < 0 ? nullptr : &block_.ops[static_cast<size_t>(d)];
  }
  bool is_splat(ValueId v, double value) const {
    const Op* d = def(v);
    while (d != nullptr && d->kind == OpKind::broadcast) d = def(now_.find(d->operands[0]));
    return d != nullptr && d->kind == OpKind::constant && d->attrs.has("value") &&
           d->attrs.f64("value") == value;
  }

  // The value that op's result equals bit for bit, or -1. May shorten op's operand chain instead.
  ValueId identity(Op& op) {
    const ir::Shape& out = block_.shape(op.results[0]);
    if (op.operands.empty()) return -1;
    const ValueId x = op.operands[0];
    const bool same_shape = block_.shape(x) == out;
    const Op* inner = def(x);
    switch (op.kind) {
      case OpKind::cast:
      case OpKind::use: return same_shape ? x : -1;
      case OpKind::transpose:
      case OpKind::broadcast:
        // The inner op can be skipped, because axes are found by name.
        if (inner != nullptr && inner->kind == op.kind) op.operands[0] = now_.find(inner->operands[0]);
        return block_.shape(op.operands[0]) == out ? op.operands[0] : -1;
      case OpKind::rename:
      case OpKind::slice:
      case OpKind::pad:
      case OpKind::dynamic_slice: return same_shape ? x : -1;
      case OpKind::concat: return op.operands.size() == 1 ? x : -1;
      case OpKind::reverse: return out.size_of(op.attrs.str("axis")) <= 1 ? x : -1;
      case OpKind::neg:
        if (inner == nullptr || inner->kind != OpKind::neg) return -1;
        return block_.shape(inner->operands[0]) == out ? now_.find(inner->operands[0]) : -1;
      case OpKind::mul: return times_one(op, out);
      default: return -1;
    }
  }

  ValueId times_one(const Op& op, const ir::Shape& out) const {
    for (int i = 0; i < 2; ++i) {
      const ValueId x = op.operands[static_cast<size_t>(i)];
      if (block_.shape(x) != out || !is_splat(op.operands[static_cast<size_t>(1 - i)], 1.0)) continue;
      const Op* d = def(x);
      if (!ir::is_floating(out.dtype) || (d != nullptr && flushes(*d))) return x;
    }
    return -1;
  }

  Block& block_;
  Replacement now_;
  std::vector<int32_t> def_;
};

}  // namespace

void simplify(ir::Program& program, const runtime::CompileOptions&) { Simplifier(program.body).run(); }

}  // namespace ostro::compile
