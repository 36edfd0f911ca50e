// VJP rules of elementwise ops. The expressions are numerics: each operator rounds once, in the order
// written.
#include "ostro/grad/vjp.h"

namespace ostro::grad_internal {

using ir::DType;
using ir::OpKind;
using ir::ValueId;

ValueId RuleContext::lit(double value, ValueId v) {
  const ir::Shape& s = b.shape(v);
  const DType d = s.dtype == DType::bf16 ? DType::f32 : s.dtype;
  const std::vector<ir::Axis> axes = s.axes;
  const ValueId scalar =
      b.splat(d == DType::f32 ? static_cast<double>(static_cast<float>(value)) : value, ir::scalar(d));
  return b.broadcast(scalar, axes);
}

Status elementwise_rule(RuleContext& c) {
  const ValueId ct = c.ct[0];
  auto& b = c.b;
  switch (c.op.kind) {
    case OpKind::neg: c.add(0, c.neg(ct)); return Status();
    case OpKind::abs: {
      const ValueId zero = c.lit(0, c.x(0));
      const ValueId below = c.select(b.add(OpKind::lt, {c.x(0), zero}), c.neg(ct), c.lit(0, ct));
      c.add(0, c.select(b.add(OpKind::gt, {c.x(0), zero}), ct, below));
      return Status();
    }
    case OpKind::exp: c.add(0, c.mul(ct, c.y())); return Status();
    case OpKind::log: c.add(0, c.div(ct, c.x(0))); return Status();
    case OpKind::log2: c.add(0, c.mul(c.div(ct, c.x(0)), c.lit(1.4426950408889634, ct))); return Status();
    case OpKind::log1p: c.add(0, c.div(ct, c.add2(c.x(0), c.lit(1, c.x(0))))); return Status();
    case OpKind::tanh: c.add(0, c.mul(ct, c.sub(c.lit(1, c.y()), c.mul(c.y(), c.y())))); return Status();
    case OpKind::sin: c.add(0, c.mul(ct, b.add(OpKind::cos, {c.x(0)}))); return Status();
    case OpKind::cos: c.add(0, c.neg(c.mul(ct, b.add(OpKind::sin, {c.x(0)})))); return Status();
    case OpKind::erf: {  // (ct * (2 / sqrt(pi))) * exp(-(x * x))
      const ValueId e = b.add(OpKind::exp, {c.neg(c.mul(c.x(0), c.x(0)))});
      c.add(0, c.mul(c.mul(ct, c.lit(1.1283791670955126, ct)), e));
      return Status();
    }
    case OpKind::erfinv: {  // (ct * (sqrt(pi) / 2)) * exp(y * y)
      const ValueId e = b.add(OpKind::exp, {c.mul(c.y(), c.y())});
      c.add(0, c.mul(c.mul(ct, c.lit(0.8862269254527580, ct)), e));
      return Status();
    }
    case OpKind::sqrt: c.add(0, c.div(c.mul(ct, c.lit(0.5, ct)), c.y())); return Status();
    case OpKind::rsqrt:  // (ct * -0.5) * ((y * y) * y)
      c.add(0, c.mul(c.mul(ct, c.lit(-0.5, ct)), c.mul(c.mul(c.y(), c.y()), c.y())));
      return Status();
    case OpKind::sigmoid:  // ct * (y * (1 - y))
      c.add(0, c.mul(ct, c.mul(c.y(), c.sub(c.lit(1, c.y()), c.y()))));
      return Status();
    case OpKind::cast: {
      // Cotangents of bf16 values are summed in f32 and rounded once, so only casts to and from f64 change
      // the dtype here.
      const DType from = c.in(0).dtype;
      if (!ir::is_floating(from)) return Status();
      if (from == DType::f64)
        c.add(0, b.cast(ct, DType::f64));
      else
        c.add(0, b.shape(ct).dtype == DType::f64 || from == DType::f32 ? b.cast(ct, DType::f32) : ct);
      return Status();
    }
    case OpKind::use: c.add(0, b.cast(ct, DType::f32)); return Status();
    case OpKind::add:
      c.add(0, ct);
      c.add(1, ct);
      return Status();
    case OpKind::sub:
      c.add(0, ct);
      if (c.wanted(1)) c.add(1, c.neg(ct));
      return Status();
    case OpKind::mul:
      if (c.wanted(0)) c.add(0, c.mul(ct, c.x(1)));
      if (c.wanted(1)) c.add(1, c.mul(ct, c.x(0)));
      return Status();
    case OpKind::div:  // ct / b and -((ct * y) / b)
      if (c.wanted(0)) c.add(0, c.div(ct, c.x(1)));
      if (c.wanted(1)) c.add(1, c.neg(c.div(c.mul(ct, c.y()), c.x(1))));
      return Status();
    case OpKind::min:
    case OpKind::max: {  // ties go to the first operand
      const ValueId first = b.add(c.op.kind == OpKind::max ? OpKind::ge : OpKind::le, {c.x(0), c.x(1)});
      if (c.wanted(0)) c.add(0, c.select(first, ct, c.lit(0, ct)));
      if (c.wanted(1)) c.add(1, c.select(first, c.lit(0, ct), ct));
      return Status();
    }
    case OpKind::select: {
      const ValueId zero = b.splat(0, b.shape(ct));
      if (c.wanted(1)) c.add(1, c.select(c.x(0), ct, zero));
      if (c.wanted(2)) c.add(2, c.select(c.x(0), zero, ct));
      return Status();
    }
    default: return no_derivative(c.op);
  }
}

}  // namespace ostro::grad_internal
