// Order, reductions, dots, and ops on whole arrays.
#include <algorithm>

#include "generator.h"
#include "ostro/ir/program/product_rule.h"

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

Attrs Frame::with_some_rule(Attrs attrs, DType dtype) {
  if (dtype == DType::bf16 && world_.rng.chance(0.4)) attrs.set(ir::kProductRule, std::string(ir::kTc16));
  return attrs;
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
              with_some_rule({{"over", over}, {"dtype", std::string(rounded ? "bf16" : "f32")}}, dtype));
}

// A stored matrix with scales; more often than not a product reads it, of which some are alone in reading it.
Frame::Ids Frame::grow_dequantize() {
  Rng& rng = world_.rng;
  std::vector<Axis> axes = world_.some_axes();
  const int64_t first = rng.below(static_cast<int64_t>(axes.size()));
  const int64_t end = rng.between(first + 1, static_cast<int64_t>(axes.size()));
  Strings over;
  int64_t rows = 1;
  for (int64_t i = first; i < end; ++i) {
    over.push_back(axes[static_cast<size_t>(i)].name);
    rows *= axes[static_cast<size_t>(i)].size;
  }
  int64_t groups = rng.between(1, std::min<int64_t>(rows, 8));
  while (rows % groups != 0) --groups;
  std::vector<Axis> of_scales(axes.begin(), axes.begin() + first);
  of_scales.push_back({"groups", groups});
  of_scales.insert(of_scales.end(), axes.begin() + end, axes.end());
  const DType dtype = rng.chance(0.5) ? DType::bf16 : DType::f32;
  const Ids matrix = emit(OpKind::dequantize, {value({DType::i8, axes}), value({dtype, of_scales})},
                          {{"over", over}, {"groups", std::string("groups")}});
  if (rng.chance(0.3)) return matrix;
  std::vector<Axis> x;
  for (const Axis& a : world_.some_axes())
    if (std::find(axes.begin(), axes.end(), a) == axes.end() &&
        Shape{dtype, axes}.count() * a.size <= 40000) {
      x.push_back(a);
      break;
    }
  x.insert(x.end(), axes.begin() + first, axes.begin() + end);
  const bool rounded = dtype == DType::bf16 && rng.chance(0.5);
  Ids results =
      emit(OpKind::dot, {value({dtype, x}), matrix[0]},
           with_some_rule({{"over", over}, {"dtype", std::string(rounded ? "bf16" : "f32")}}, dtype));
  if (rng.chance(0.3)) results.push_back(matrix[0]);
  return results;
}

std::vector<int64_t> Frame::add_origins(const Shape& shape, Ids& operands) {
  Ints sizes;
  for (const Axis& a : shape.axes) {
    operands.push_back(builder_.i64_scalar(world_.rng.below(5)));
    sizes.push_back(a.size + world_.rng.below(9));
  }
  return sizes;
}

Frame::Ids Frame::quantized(const Shape& shape, const Attrs& attrs) {
  Ids operands{value(shape)};
  Attrs all = attrs;
  all.set("rounding", std::string("nearest"));
  if (world_.rng.chance(0.5)) {
    all.set("rounding", std::string("dithered"));
    operands.push_back(value({DType::u32, {{"word", 2}}}));
    all.set("global_sizes", add_origins(shape, operands));
  }
  return emit(OpKind::quantize, operands, all);
}

// The integers of some value, and more often than not their product with those of another.
Frame::Ids Frame::grow_integers(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  if (kind == OpKind::dot_int8) dtype = rng.chance(0.5) ? DType::f32 : DType::bf16;
  const Shape x = some_shape(dtype);
  Strings over;
  for (const Axis& a : x.axes)
    if (over.empty() || rng.chance(0.5)) over.push_back(a.name);
  rng.shuffle(over);
  const Attrs attrs{{"over", over},
                    {"block", rng.pick(std::vector<int64_t>{1, 3, 16, 256})},
                    {"groups", std::string("blocks")}};
  const Ids a = quantized(x, attrs);
  if (kind == OpKind::quantize) return a;
  std::vector<Axis> other;
  for (const std::string& name : over) other.push_back({name, x.size_of(name)});
  for (const Axis& more : world_.some_axes())
    if (!x.has(more.name) && x.count() * more.size <= 40000) {
      other.insert(other.begin() + rng.below(static_cast<int64_t>(other.size()) + 1), more);
      break;
    }
  const Ids b = quantized({dtype, other}, attrs);
  Attrs product = attrs;
  product.set("dtype", std::string(rng.chance(0.5) ? "bf16" : "f32"));
  return emit(kind, {a[0], a[1], b[0], b[1]}, product);
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
