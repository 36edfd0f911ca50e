// Sources, elementwise, layout, reductions, dots.
#include <algorithm>

#include "generator.h"

namespace ostro::fuzz {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

Strings names(const std::vector<Axis>& axes) { return Shape{DType::f32, axes}.names(); }

}  // namespace

void Frame::grow_source() {
  Rng& rng = world_.rng;
  const Axis& axis = rng.pick(world_.axes);
  auto origin = [&] { return builder_.i64_scalar(0); };
  const std::vector<std::string> kinds{"bits", "uniform", "normal", "trunc_normal"};
  switch (rng.below(4)) {
    case 0: {
      const DType dtype = rng.pick(
          std::vector<DType>{DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u32});
      Attrs attrs = ir::shape_attrs({axis});
      attrs.set("dtype", std::string(ir::dtype_name(dtype)));
      attrs.set("value", static_cast<double>(rng.below(5)));
      return emit(OpKind::constant, {}, attrs);
    }
    case 1:
      return emit(OpKind::iota, {origin()}, {{"axis", axis.name}, {"size", axis.size}});
    case 2: {
      const std::vector<Axis> axes = world_.some_axes();
      Attrs attrs = ir::shape_attrs(axes);
      attrs.set("kind", rng.pick(kinds));
      attrs.set("global_sizes", attrs.ints("sizes"));
      Ids operands{value({DType::u32, {{"word", 2}}})};
      for (size_t i = 0; i < axes.size(); ++i) operands.push_back(origin());
      return emit(OpKind::random, operands, attrs);
    }
    default:
      return emit(OpKind::fold_in,
                  {value({DType::u32, {{"word", 2}}}),
                   value(ir::scalar(rng.pick(std::vector<DType>{DType::i32, DType::u32, DType::i64})))});
  }
}

void Frame::grow_elementwise() {
  Rng& rng = world_.rng;
  const bool f64 = !world_.smooth && rng.chance(0.1);
  const Shape shape = some_shape(f64 ? DType::f64 : DType::f32);
  auto operand = [&] { return value(shape.with_dtype(f64 ? DType::f64 : some_float())); };
  switch (rng.below(4)) {
    case 0: {
      std::vector<OpKind> kinds{OpKind::neg,    OpKind::abs,  OpKind::exp,   OpKind::log,    OpKind::log2,
                                OpKind::log1p,  OpKind::tanh, OpKind::sin,   OpKind::cos,    OpKind::erf,
                                OpKind::erfinv, OpKind::sqrt, OpKind::rsqrt, OpKind::sigmoid};
      if (f64) kinds = {OpKind::neg, OpKind::abs, OpKind::sqrt};
      if (!world_.smooth && !f64) kinds.push_back(OpKind::floor);
      if (!world_.smooth) kinds.push_back(OpKind::is_finite);
      const OpKind kind = rng.pick(kinds);
      ValueId x = operand();
      const DType dtype = block.shape(x).dtype;
      // Into the domain of the function, most of the time.
      if ((kind == OpKind::log || kind == OpKind::log2 || kind == OpKind::sqrt || kind == OpKind::rsqrt ||
           kind == OpKind::log1p) &&
          rng.chance(0.9)) {
        const ValueId positive = builder_.add(OpKind::abs, {x});
        x = builder_.add(OpKind::add, {positive, splat(0.5, block.shape(positive))});
      }
      if (kind == OpKind::erfinv) {
        const ValueId inside = builder_.add(OpKind::tanh, {x});
        x = builder_.add(OpKind::mul, {inside, splat(0.875, block.shape(inside))});
      }
      return emit(kind, {builder_.cast(x, dtype)});
    }
    case 1:
    case 2: {
      std::vector<OpKind> kinds{OpKind::add, OpKind::sub, OpKind::mul, OpKind::div, OpKind::min, OpKind::max};
      if (!world_.smooth)
        for (OpKind k : {OpKind::eq, OpKind::ne, OpKind::lt, OpKind::le, OpKind::gt, OpKind::ge})
          kinds.push_back(k);
      const OpKind kind = rng.pick(kinds);
      const ValueId a = operand();
      ValueId b = operand();
      if (kind == OpKind::div && rng.chance(0.9)) {
        const ValueId square = builder_.add(OpKind::mul, {b, b});
        b = builder_.add(OpKind::add, {square, splat(0.5, block.shape(square))});
      }
      return emit(kind, {a, b});
    }
    default: {
      if (rng.chance(0.4)) {
        const DType to = world_.smooth ? some_float() : rng.chance(0.2) ? DType::boolean : some_number();
        const DType from = world_.smooth ? some_float() : rng.chance(0.2) ? DType::boolean : some_number();
        return emit(OpKind::cast, {value(shape.with_dtype(from))},
                    {{"dtype", std::string(ir::dtype_name(to))}});
      }
      if (rng.chance(0.3))
        return emit(OpKind::use, {value(shape.with_dtype(DType::f32))},
                    {{"dtype", std::string(ir::dtype_name(some_float()))}});
      const DType dtype = f64 ? DType::f64 : some_float();
      return emit(OpKind::select, {value(shape.with_dtype(DType::boolean)), value(shape.with_dtype(dtype)),
                                   value(shape.with_dtype(rng.chance(0.5) || f64 ? dtype : some_float()))});
    }
  }
}

void Frame::grow_integer() {
  Rng& rng = world_.rng;
  const bool logical = rng.chance(0.15);
  const DType dtype =
      logical ? DType::boolean : rng.pick(std::vector<DType>{DType::i32, DType::i64, DType::u32});
  const Shape shape = some_shape(dtype);
  if (logical) {
    if (rng.chance(0.3)) return emit(OpKind::logical_not, {value(shape)});
    if (rng.chance(0.2)) return emit(OpKind::select, {value(shape), value(shape), value(shape)});
    return emit(rng.pick(std::vector<OpKind>{OpKind::bit_and, OpKind::bit_or, OpKind::bit_xor, OpKind::eq,
                                             OpKind::ne}),
                {value(shape), value(shape)});
  }
  if (rng.chance(0.15)) return emit(rng.pick(std::vector<OpKind>{OpKind::neg, OpKind::abs}), {value(shape)});
  if (rng.chance(0.1))
    return emit(OpKind::select, {value(shape.with_dtype(DType::boolean)), value(shape), value(shape)});
  emit(rng.pick(std::vector<OpKind>{OpKind::add, OpKind::sub, OpKind::mul, OpKind::div, OpKind::rem,
                                    OpKind::min, OpKind::max, OpKind::bit_and, OpKind::bit_or,
                                    OpKind::bit_xor, OpKind::shl, OpKind::shr, OpKind::eq, OpKind::ne,
                                    OpKind::lt, OpKind::le, OpKind::gt, OpKind::ge}),
       {value(shape), value(shape)});
}

void Frame::grow_layout() {
  Rng& rng = world_.rng;
  const DType dtype = world_.smooth ? some_float() : rng.chance(0.2) ? DType::boolean : some_number();
  const Shape shape = some_shape(dtype);
  const Axis axis = rng.pick(shape.axes);
  const ValueId x = value(shape);
  const int64_t n = axis.size;
  switch (rng.below(12)) {
    case 0: {
      std::vector<Axis> axes = shape.axes;
      const Axis& more = rng.pick(world_.axes);
      if (!shape.has(more.name)) axes.insert(axes.begin() + rng.between(0, shape.rank()), more);
      return emit(OpKind::broadcast, {x}, ir::shape_attrs(axes));
    }
    case 1: {
      Strings order = shape.names();
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
      return emit(OpKind::transpose, {x}, {{"axes", order}});
    }
    case 2:
      return emit(OpKind::rename, {x}, {{"from", Strings{axis.name}}, {"to", Strings{axis.name + "_2"}}});
    case 3: {
      int64_t part = 1;
      for (int64_t d : {2, 3, 4, 5, 7, 8})
        if (n % d == 0 && rng.chance(0.6)) part = d;
      return emit(
          OpKind::split_axis, {x},
          {{"axis", axis.name}, {"axes", Strings{"outer", "inner"}}, {"sizes", Ints{n / part, part}}});
    }
    case 4:
      return emit(OpKind::merge_axes, {x}, {{"axes", shape.names()}, {"axis", std::string("merged")}});
    case 5: {
      const int64_t stride = rng.between(1, 2), size = rng.between(1, (n + stride - 1) / stride);
      const int64_t start = rng.between(0, n - 1 - (size - 1) * stride);
      return emit(OpKind::slice, {x},
                  {{"axis", axis.name}, {"start", start}, {"size", size}, {"stride", stride}});
    }
    case 6:
      return emit(OpKind::pad, {x}, {{"axis", axis.name}, {"low", rng.below(3)}, {"high", rng.below(3)}});
    case 7:
      return emit(OpKind::concat, {x, value(shape)}, {{"axis", axis.name}});
    case 8: {
      const int64_t first = rng.between(0, n);
      return emit(OpKind::split, {x}, {{"axis", axis.name}, {"sizes", Ints{first, n - first}}});
    }
    case 9:
      return emit(OpKind::stack, {x, value(shape)},
                  {{"axis", std::string("stacked")}, {"position", rng.between(0, shape.rank())}});
    case 10:
      if (n > 9) return emit(OpKind::reverse, {x}, {{"axis", axis.name}});
      return emit(OpKind::unstack, {x}, {{"axis", axis.name}});
    default:
      return emit(OpKind::reverse, {x}, {{"axis", axis.name}});
  }
}

void Frame::grow_reduction() {
  Rng& rng = world_.rng;
  const bool f64 = !world_.smooth && rng.chance(0.2);
  const Shape shape = some_shape(f64 ? DType::f64 : some_float());
  Strings axes = names(shape.axes);
  if (axes.size() > 1 && rng.chance(0.6)) axes.erase(axes.begin() + rng.below(shape.rank()));
  const int64_t kind = rng.below(world_.smooth ? 6 : 11);
  if (kind < 4) {
    const bool wide = f64 || (!world_.smooth && rng.chance(0.3));
    return emit(OpKind::sum, {value(shape)},
                {{"axes", axes},
                 {"order", std::string(rng.chance(0.5) ? "striped" : "serial")},
                 {"acc", std::string(wide ? "f64" : "f32")}});
  }
  if (kind == 4) return emit(OpKind::reduce_max, {value(shape)}, {{"axes", axes}});
  if (kind == 5) return emit(OpKind::reduce_min, {value(shape)}, {{"axes", axes}});
  if (kind == 6)
    return emit(OpKind::tree_sum, {value(shape.with_dtype(f64 ? DType::f64 : DType::f32))}, {{"axes", axes}});
  const Shape number = shape.with_dtype(some_number());
  if (kind == 7) return emit(OpKind::argmax, {value(number)}, {{"axis", axes[0]}});
  if (kind == 8)
    return emit(rng.chance(0.5) ? OpKind::reduce_max : OpKind::reduce_min, {value(number)}, {{"axes", axes}});
  if (kind == 9)
    return emit(OpKind::sum,
                {value(shape.with_dtype(rng.pick(std::vector<DType>{DType::i32, DType::i64, DType::u32})))},
                {{"axes", axes}});
  if (rng.chance(0.5))
    return emit(OpKind::sort, {value(number)}, {{"axis", axes[0]}, {"descending", rng.below(2)}});
  emit(OpKind::top_k, {value(number)},
       {{"axis", axes[0]}, {"k", rng.between(1, std::min<int64_t>(3, shape.size_of(axes[0])))}});
}

void Frame::grow_dot() {
  Rng& rng = world_.rng;
  const DType dtype = some_float();
  const Shape a = some_shape(dtype);
  Strings over;
  std::vector<Axis> b_axes;
  int64_t count = 1;
  for (const Axis& axis : a.axes) {
    const int64_t role = rng.below(4);
    if (role < 2) over.push_back(axis.name);
    if (role < 3) b_axes.push_back(axis), count *= axis.size;
  }
  if (over.size() > 1 && rng.chance(0.3)) std::swap(over[0], over[1]);
  for (const Axis& axis : world_.some_axes())
    if (!a.has(axis.name) && count * axis.size <= 4000) {
      b_axes.insert(b_axes.begin() + rng.below(static_cast<int64_t>(b_axes.size()) + 1), axis);
      count *= axis.size;
      break;
    }
  int64_t work = a.count();
  for (const Axis& axis : b_axes)
    if (!a.has(axis.name)) work *= axis.size;
  if (work > 200000) return grow_elementwise();
  const bool narrow = dtype == DType::bf16 && rng.chance(0.5);
  emit(OpKind::dot, {value(a), value({dtype, b_axes})},
       {{"over", over}, {"dtype", std::string(narrow ? "bf16" : "f32")}});
}

}  // namespace ostro::fuzz
