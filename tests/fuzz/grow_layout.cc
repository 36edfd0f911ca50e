// Ops that move elements.
#include <algorithm>

#include "generator.h"

namespace ostro::fuzz {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

}  // namespace

Frame::Ids Frame::grow_layout(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Shape shape = some_shape(dtype);
  const Axis axis = rng.pick(shape.axes);
  const ValueId x = value(shape);
  const int64_t n = axis.size;
  switch (kind) {
    case OpKind::broadcast: {
      std::vector<Axis> axes = shape.axes;
      const Axis& more = rng.pick(world_.axes);
      if (!shape.has(more.name)) axes.insert(axes.begin() + rng.between(0, shape.rank()), more);
      return emit(kind, {x}, ir::shape_attrs(axes));
    }
    case OpKind::transpose: {
      Strings order = shape.names();
      rng.shuffle(order);
      return emit(kind, {x}, {{"axes", order}});
    }
    case OpKind::rename:
      return emit(kind, {x}, {{"from", Strings{axis.name}}, {"to", Strings{axis.name + "_2"}}});
    case OpKind::split_axis: {
      int64_t part = 1;
      for (int64_t d : {2, 3, 4, 5, 7, 8})
        if (n % d == 0 && rng.chance(0.6)) part = d;
      return emit(
          kind, {x},
          {{"axis", axis.name}, {"axes", Strings{"outer", "inner"}}, {"sizes", Ints{n / part, part}}});
    }
    case OpKind::merge_axes:
      return emit(kind, {x}, {{"axes", shape.names()}, {"axis", std::string("merged")}});
    case OpKind::slice: {
      const int64_t stride = rng.between(1, 2), size = rng.between(1, (n + stride - 1) / stride);
      const int64_t start = rng.between(0, n - 1 - (size - 1) * stride);
      return emit(kind, {x}, {{"axis", axis.name}, {"start", start}, {"size", size}, {"stride", stride}});
    }
    case OpKind::pad:
      return emit(kind, {x}, {{"axis", axis.name}, {"low", rng.below(3)}, {"high", rng.below(3)}});
    default:  // reverse
      return emit(kind, {x}, {{"axis", axis.name}});
  }
}

ValueId Frame::part(const Shape& shape) {
  Rng& rng = world_.rng;
  const OpKind reduction = rng.chance(0.5) ? OpKind::reduce_max : OpKind::reduce_min;
  const Axis& more = rng.pick(world_.axes);
  ValueId v;
  if (shape.dtype == DType::boolean) {
    v = builder_.add(OpKind::logical_not, {value(shape)});
  } else if (rng.chance(0.2)) {
    v = builder_.add(OpKind::neg, {value(shape)});
  } else if (rng.chance(0.3) && !shape.has(more.name) && shape.count() * more.size <= 8000) {
    Shape rows = shape;  // what is left of them
    rows.axes.push_back(more);
    v = builder_.add(reduction, {value(rows)}, {{"axes", Strings{more.name}}});
  } else {
    const ValueId x = value(shape);
    Strings over = shape.names();
    over.erase(over.begin(), over.begin() + rng.below(shape.rank()));
    const ValueId row = builder_.add(reduction, {x}, {{"axes", over}});
    v = builder_.add(OpKind::sub, {x, builder_.broadcast(row, shape.axes)});
  }
  return tame(builder_.cast(v, shape.dtype));
}

Frame::Ids Frame::grow_joining(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  Shape shape = some_shape(dtype);
  Axis axis = rng.pick(shape.axes);
  // Both parts made for this alone, so that they may be made in their places, or any values.
  const bool own = rng.chance(0.85);
  const auto operand = [&] { return own ? part(shape) : value(shape); };
  switch (kind) {
    case OpKind::concat: return emit(kind, {operand(), operand()}, {{"axis", axis.name}});
    case OpKind::split: {
      const int64_t first = rng.between(0, axis.size);
      return emit(kind, {value(shape)}, {{"axis", axis.name}, {"sizes", Ints{first, axis.size - first}}});
    }
    case OpKind::stack:
      return emit(kind, {operand(), operand()},
                  {{"axis", std::string("stacked")}, {"position", rng.between(0, shape.rank())}});
    default: {  // unstack, of an axis that does not make too many pieces
      if (axis.size > 9) {
        axis = world_.axis("kv_heads");
        if (!shape.has(axis.name)) shape.axes.push_back(axis);
      }
      return emit(kind, {value(shape)}, {{"axis", axis.name}});
    }
  }
}

Frame::Ids Frame::grow_indexed(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Shape shape = some_shape(dtype);
  const Axis axis = rng.pick(shape.axes);
  const ValueId origin = builder_.i64_scalar(world_.smooth || rng.chance(0.8) ? 0 : 1);
  switch (kind) {
    case OpKind::gather: {
      std::vector<Axis> index_axes;
      for (const Axis& a : world_.some_axes())
        if (a.name != axis.name && index_axes.size() < 2) index_axes.push_back(a);
      return emit(kind, {value(shape), value({DType::i32, index_axes}), origin}, {{"axis", axis.name}});
    }
    case OpKind::scatter_add: {
      std::vector<Axis> index_axes;
      for (const Axis& a : shape.axes)
        if (a == axis || rng.chance(0.6)) index_axes.push_back(a);
      Strings batch;
      if (index_axes.size() > 1 && rng.chance(0.3)) batch.push_back(index_axes[0].name);
      return emit(kind, {value(shape), value({DType::i32, index_axes}), origin},
                  {{"axis", std::string("row")},
                   {"size", rng.between(2, 9)},
                   {"position", int64_t{0}},
                   {"batch", batch}});
    }
    case OpKind::dynamic_slice:
      return emit(kind, {value(shape), value(ir::scalar(DType::i32))},
                  {{"axis", axis.name}, {"size", rng.between(1, axis.size)}});
    default: {  // dynamic_update_slice
      Shape update = shape;
      update.axes[static_cast<size_t>(shape.find(axis.name))].size = rng.between(1, axis.size);
      std::vector<Axis> start_axes;
      const bool per_example = !world_.smooth && rng.chance(0.4);  // has no derivative
      if (per_example && shape.rank() > 1 && shape.axes[0].name != axis.name) start_axes = {shape.axes[0]};
      return emit(kind, {value(shape), fresh(update), value({DType::i32, start_axes})},
                  {{"axis", axis.name}});
    }
  }
}

}  // namespace ostro::fuzz
