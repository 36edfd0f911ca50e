// Order, reductions, dots, and ops on whole arrays.
#include <algorithm>

#include "generator.h"

namespace ostro::fuzz {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

}  // namespace

Frame::Ids Frame::grow_ordered(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Shape shape = some_shape(dtype);
  const Axis axis = rng.pick(shape.axes);
  Attrs attrs{{"axis", axis.name}};
  if (kind == OpKind::sort) attrs.set("descending", rng.below(2));
  if (kind == OpKind::top_k) attrs.set("k", rng.between(1, std::min<int64_t>(3, axis.size)));
  return emit(kind, {value(shape)}, attrs);
}

Frame::Ids Frame::grow_reduction(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Shape shape = some_shape(dtype);
  Strings axes = shape.names();
  if (axes.size() > 1 && rng.chance(0.6)) axes.erase(axes.begin() + rng.below(shape.rank()));
  Attrs attrs{{"axes", axes}};
  if (kind == OpKind::sum && ir::is_floating(dtype)) {
    const bool wide = dtype == DType::f64 || (!world_.smooth && rng.chance(0.3));
    attrs.set("order", std::string(rng.chance(0.5) ? "striped" : "serial"));
    attrs.set("acc", std::string(wide ? "f64" : "f32"));
  }
  return emit(kind, {value(shape)}, attrs);
}

Frame::Ids Frame::grow_dot(DType dtype) {
  Rng& rng = world_.rng;
  const Shape a = some_shape(dtype);
  Strings over;
  std::vector<Axis> b_axes;
  for (const Axis& axis : a.axes) {
    const int64_t role = rng.below(4);
    if (role < 2) over.push_back(axis.name);
    if (role < 3) b_axes.push_back(axis);
  }
  if (over.empty() && (b_axes.empty() || rng.chance(0.8))) {
    over.push_back(a.axes[0].name);
    if (std::find(b_axes.begin(), b_axes.end(), a.axes[0]) == b_axes.end()) b_axes.push_back(a.axes[0]);
  }
  rng.shuffle(over);
  const int64_t shared = Shape{dtype, b_axes}.count();
  for (const Axis& axis : world_.some_axes())
    if (!a.has(axis.name) && shared * axis.size <= 4000 && a.count() * axis.size <= 200000) {
      b_axes.insert(b_axes.begin() + rng.below(static_cast<int64_t>(b_axes.size()) + 1), axis);
      break;
    }
  const bool rounded = dtype == DType::bf16 && rng.chance(0.5);
  return emit(OpKind::dot, {value(a), value({dtype, b_axes})},
              {{"over", over}, {"dtype", std::string(rounded ? "bf16" : "f32")}});
}

Frame::Ids Frame::grow_state(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Shape shape = some_shape(dtype);
  if (kind == OpKind::box_sumsq) {
    Strings axes;
    Ints cells;
    for (const Axis& a : shape.axes)
      if (rng.chance(0.5)) {
        axes.push_back(a.name);
        cells.push_back(rng.chance(0.3) ? a.size : rng.between(1, std::min<int64_t>(4, a.size)));
      }
    Attrs attrs{{"axes", axes}, {"cells", cells}};
    if (rng.chance(0.3)) {
      Ints lengths;
      for (size_t i = 0; i < axes.size(); ++i)
        lengths.push_back((shape.size_of(axes[i]) + cells[i] - 1) / cells[i] + rng.below(2));
      attrs.set("lengths", lengths);
    }
    return emit(kind, {value(shape)}, attrs);
  }
  Ids operands{value(shape)};
  Ints sizes;
  for (const Axis& a : shape.axes) {
    operands.push_back(builder_.i64_scalar(0));
    sizes.push_back(a.size);
  }
  return emit(kind, operands, {{"global_sizes", sizes}});
}

}  // namespace ostro::fuzz
