// Sources and elementwise ops.
#include "generator.h"

namespace ostro::fuzz {

Frame::Ids Frame::grow_source(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const std::vector<Axis> axes = world_.some_axes();
  const Shape key{DType::u32, {{"word", 2}}};
  Attrs attrs = ir::shape_attrs(axes);
  switch (kind) {
    case OpKind::constant:
      attrs.set("dtype", std::string(ir::dtype_name(dtype)));
      attrs.set("value", static_cast<double>(rng.below(dtype == DType::boolean ? 2 : 5)));
      return emit(kind, {}, attrs);
    case OpKind::iota:
      return emit(kind, {builder_.i64_scalar(0)}, {{"axis", axes[0].name}, {"size", axes[0].size}});
    case OpKind::random: {
      attrs.set("kind", rng.pick(std::vector<std::string>{"bits", "uniform", "normal", "trunc_normal"}));
      attrs.set("global_sizes", attrs.ints("sizes"));
      Ids operands{value(key)};
      for (size_t i = 0; i < axes.size(); ++i) operands.push_back(builder_.i64_scalar(0));
      return emit(kind, operands, attrs);
    }
    default:  // fold_in
      return emit(
          kind,
          {value(key), value(ir::scalar(rng.pick(std::vector<DType>{DType::i32, DType::u32, DType::i64})))});
  }
}

Frame::Ids Frame::grow_unary(OpKind kind, DType dtype) {
  ValueId x = value(some_shape(dtype));
  // Into the domain of the function, most of the time.
  if ((kind == OpKind::log || kind == OpKind::log2 || kind == OpKind::sqrt || kind == OpKind::rsqrt ||
       kind == OpKind::log1p) &&
      world_.rng.chance(0.9)) {
    const ValueId positive = builder_.add(OpKind::abs, {x});
    x = builder_.add(OpKind::add, {positive, splat(0.5, block.shape(positive))});
  }
  if (kind == OpKind::erfinv) {
    const ValueId inside = builder_.add(OpKind::tanh, {x});
    x = builder_.add(OpKind::mul, {inside, splat(0.875, block.shape(inside))});
  }
  return emit(kind, {builder_.cast(x, dtype)});
}

Frame::Ids Frame::grow_binary(OpKind kind, DType dtype) {
  const Shape shape = some_shape(dtype);
  const ValueId a = value(shape);
  ValueId b = value(shape.with_dtype(beside(dtype)));
  if (kind == OpKind::div && ir::is_floating(dtype) && world_.rng.chance(0.9)) {
    const ValueId square = builder_.add(OpKind::mul, {b, b});
    b = builder_.add(OpKind::add, {square, splat(0.5, block.shape(square))});
  }
  return emit(kind, {a, b});
}

Frame::Ids Frame::grow_conversion(OpKind kind, DType dtype) {
  const Shape shape = some_shape(dtype);
  if (kind == OpKind::select)
    return emit(kind, {value(shape.with_dtype(DType::boolean)), value(shape),
                       value(shape.with_dtype(beside(dtype)))});
  // `use` goes from f32 to anything, and from the rest to itself.
  const DType to = kind == OpKind::use && dtype != DType::f32 ? dtype : world_.some_dtype(OpKind::cast);
  return emit(kind, {value(shape)}, {{"dtype", std::string(ir::dtype_name(to))}});
}

}  // namespace ostro::fuzz
