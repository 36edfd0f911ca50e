// Elementwise ops: broadcasting by name, literals, compositions.
#include <cmath>

#include <fmt/format.h>

#include "ostro/trace/frame.h"
#include "ostro/trace/ops.h"

namespace ostro {
namespace {

using ir::OpKind;

// The axes of a result: those of the operand that has all axes, in its order; else a's axes, then the axes
// that only b has.
std::vector<Axis> joined(const char* op, const Shape& a, const Shape& b, const Loc& loc) {
  for (const Axis& x : a.axes)
    if (b.has(x.name) && b.size_of(x.name) != x.size)
      trace_fail(fmt::format("{}: axis \"{}\" is {} in {} but {} in {}", op, x.name, x.size, a.str(),
                             b.size_of(x.name), b.str()),
                 loc);
  bool b_covers = b.rank() > a.rank();
  for (const Axis& x : a.axes) b_covers &= b.has(x.name);
  if (b_covers) return b.axes;
  std::vector<Axis> axes = a.axes;
  for (const Axis& x : b.axes)
    if (!a.has(x.name)) axes.push_back(x);
  return axes;
}

void check_operands(const char* op, const Operand& a, const Operand& b) {
  if (a.array() == nullptr && b.array() == nullptr)
    trace_fail(fmt::format("{}: two literals; give one an array", op), a.location());
  for (const Operand* o : {&a, &b})
    if (o->array() != nullptr && !o->array()->valid())
      trace_fail(fmt::format("{}: an empty Array; was the field initialised?", op), a.location());
}

// A literal rounded once to the dtype it stands for; one that an integer dtype cannot hold is an error.
Array literal(const char* op, const Operand& l, DType dtype, const std::vector<Axis>& axes, const Loc& loc) {
  double v = l.literal();
  if (dtype == DType::f32) v = static_cast<double>(static_cast<float>(v));
  if (ir::is_integer(dtype)) {
    const double low = dtype == DType::u32   ? 0
                       : dtype == DType::i32 ? -0x1p31
                                             : -0x1p53,
                 high = dtype == DType::u32   ? 0x1p32 - 1
                        : dtype == DType::i32 ? 0x1p31 - 1
                                              : 0x1p53;
    if (!(v >= low && v <= high && v == std::floor(v)))
      trace_fail(fmt::format("{}: the literal {} beside {}, which cannot hold it; cast the array", op, v,
                             ir::dtype_name(dtype)),
                 loc);
  }
  return full(v, dtype, axes, loc);
}

// A literal becomes a constant of the array's dtype (f32 beside bf16) with the array's axes; two arrays are
// broadcast to their joined axes.
Array binary(OpKind kind, const Operand& a, const Operand& b) {
  const Loc& loc = a.location();
  const char* name = ir::op_name(kind);
  check_operands(name, a, b);
  auto beside = [&](const Operand& l, const Array& other) {
    const DType d = other.dtype() == DType::bf16 ? DType::f32 : other.dtype();
    return literal(name, l, d, other.shape().axes, loc);
  };
  if (a.array() == nullptr) return apply(kind, {beside(a, *b.array()), *b.array()}, {}, loc);
  if (b.array() == nullptr) return apply(kind, {*a.array(), beside(b, *a.array())}, {}, loc);
  const Array &x = *a.array(), &y = *b.array();
  const std::vector<Axis> axes = joined(name, x.shape(), y.shape(), loc);
  return apply(kind, {broadcast_to(x, axes, loc), broadcast_to(y, axes, loc)}, {}, loc);
}

}  // namespace

#define OSTRO_BINARY(name, kind) \
  Array name(Operand a, Operand b) { return binary(OpKind::kind, a, b); }
OSTRO_BINARY(operator+, add)
OSTRO_BINARY(operator-, sub)
OSTRO_BINARY(operator*, mul)
OSTRO_BINARY(operator/, div)
OSTRO_BINARY(operator%, rem)
OSTRO_BINARY(operator==, eq)
OSTRO_BINARY(operator!=, ne)
OSTRO_BINARY(operator<, lt)
OSTRO_BINARY(operator<=, le)
OSTRO_BINARY(operator>, gt)
OSTRO_BINARY(operator>=, ge)
OSTRO_BINARY(operator&, bit_and)
OSTRO_BINARY(operator|, bit_or)
OSTRO_BINARY(operator^, bit_xor)
OSTRO_BINARY(minimum, min)
OSTRO_BINARY(maximum, max)
OSTRO_BINARY(shift_left, shl)
OSTRO_BINARY(shift_right, shr)
#undef OSTRO_BINARY

Array operator-(Operand a) {
  if (a.array() == nullptr) trace_fail("neg: a literal", a.location());
  return apply(OpKind::neg, {*a.array()}, {}, a.location());
}

#define OSTRO_UNARY(name, kind) \
  Array name(const Array& x, Loc loc) { return apply(OpKind::kind, {x}, {}, loc); }
OSTRO_UNARY(logical_not, logical_not)
OSTRO_UNARY(abs, abs)
OSTRO_UNARY(exp, exp)
OSTRO_UNARY(log, log)
OSTRO_UNARY(log2, log2)
OSTRO_UNARY(log1p, log1p)
OSTRO_UNARY(tanh, tanh)
OSTRO_UNARY(sin, sin)
OSTRO_UNARY(cos, cos)
OSTRO_UNARY(erf, erf)
OSTRO_UNARY(erfinv, erfinv)
OSTRO_UNARY(sqrt, sqrt)
OSTRO_UNARY(rsqrt, rsqrt)
OSTRO_UNARY(sigmoid, sigmoid)
OSTRO_UNARY(floor, floor)
OSTRO_UNARY(is_finite, is_finite)
#undef OSTRO_UNARY

Array square(const Array& x, Loc loc) { return apply(OpKind::mul, {x, x}, {}, loc); }
Array silu(const Array& x, Loc loc) { return apply(OpKind::mul, {x, sigmoid(x, loc)}, {}, loc); }
Array relu(const Array& x, Loc loc) { return maximum(Operand(x, loc), Operand(0.0, loc)); }

// x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), operators left to right as written here.
Array gelu_tanh(const Array& x, Loc loc) {
  auto op = [&](const Array& a) { return Operand(a, loc); };
  const Array cube = op(op(x) * op(x)) * op(x);
  const Array inner = op(op(x) + op(op(cube) * Operand(0.044715, loc))) * Operand(0.7978845608028654, loc);
  return op(op(x) * Operand(0.5, loc)) * op(op(tanh(inner, loc)) + Operand(1.0, loc));
}

// x * 0.5 * (1 + erf(x * sqrt(1/2))).
Array gelu_erf(const Array& x, Loc loc) {
  auto op = [&](const Array& a) { return Operand(a, loc); };
  const Array e = erf(op(x) * Operand(0.7071067811865476, loc), loc);
  return op(op(x) * Operand(0.5, loc)) * op(op(e) + Operand(1.0, loc));
}

// max(x, 0) is written x / 2 + |x| / 2, which has the same bits in this sum and the derivative 1/2 at 0.
Array softplus(const Array& x, Loc loc) {
  auto op = [&](const Array& a) { return Operand(a, loc); };
  const Array size = abs(x, loc), half = op(x) * Operand(0.5, loc), half_size = op(size) * Operand(0.5, loc);
  return op(log1p(exp(-op(size), loc), loc)) + op(op(half) + op(half_size));
}

Array select(const Array& cond, Operand a, Operand b) {
  const Loc& loc = a.location();
  check_operands("select", a, b);
  const Array& known = a.array() != nullptr ? *a.array() : *b.array();
  const DType d = known.use_dtype().value_or(known.dtype());
  auto value = [&](const Operand& o) {
    return o.array() != nullptr ? *o.array() : literal("select", o, d, known.shape().axes, loc);
  };
  const Array x = value(a), y = value(b);
  Shape all{d, joined("select", x.shape(), y.shape(), loc)};
  const std::vector<Axis> axes = joined("select", cond.shape(), all, loc);
  return apply(OpKind::select,
               {broadcast_to(cond, axes, loc), broadcast_to(x, axes, loc), broadcast_to(y, axes, loc)}, {},
               loc);
}

Array cast(const Array& x, DType dtype, Loc loc) {
  if (x.dtype() == dtype && !x.use_dtype()) return x;
  return apply(OpKind::cast, {x}, {{"dtype", std::string(ir::dtype_name(dtype))}}, loc);
}

Array checkpoint_name(const Array& x, const std::string& name) {
  if (Frame* f = Frame::current()) f->label(x, name);
  return x;
}

}  // namespace ostro
