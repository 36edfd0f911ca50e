// Layout ops and sources.
#include <algorithm>

#include <fmt/format.h>

#include "ostro/numerics/threefry.h"
#include "ostro/trace/frame.h"
#include "ostro/trace/ops.h"

namespace ostro {
namespace {

using ir::OpKind;

Array i64_zero(const Loc& loc) { return full(0, DType::i64, {}, loc); }

Array random(const char* kind, const Array& key, const std::vector<Axis>& axes, const Loc& loc) {
  ir::Attrs attrs = ir::shape_attrs(axes);
  attrs.set("global_sizes", attrs.ints("sizes"));
  attrs.set("kind", std::string(kind));
  std::vector<Array> operands{key};
  for (size_t i = 0; i < axes.size(); ++i) operands.push_back(i64_zero(loc));
  return apply(OpKind::random, operands, std::move(attrs), loc);
}

}  // namespace

Array full(double value, DType dtype, const std::vector<Axis>& axes, Loc loc) {
  ir::Attrs attrs{{"axes", Axes{}}, {"sizes", std::vector<int64_t>{}}};
  attrs.set("dtype", std::string(ir::dtype_name(dtype)));
  attrs.set("value", value);
  const Array scalar = apply(OpKind::constant, {}, std::move(attrs), loc);
  return axes.empty() ? scalar : broadcast_to(scalar, axes, loc);
}

Array iota(const Axis& axis, Loc loc) {
  return apply(OpKind::iota, {i64_zero(loc)}, {{"axis", axis.name}, {"size", axis.size}}, loc);
}

Array random_uniform(const Array& key, const std::vector<Axis>& axes, Loc loc) {
  return random("uniform", key, axes, loc);
}
Array random_normal(const Array& key, const std::vector<Axis>& axes, Loc loc) {
  return random("normal", key, axes, loc);
}
Array random_trunc_normal(const Array& key, const std::vector<Axis>& axes, Loc loc) {
  return random("trunc_normal", key, axes, loc);
}
Array random_bits(const Array& key, const std::vector<Axis>& axes, Loc loc) {
  return random("bits", key, axes, loc);
}

Array fold_in(const Array& key, std::string_view name, Loc loc) {
  return fold_in(key, full(static_cast<double>(numerics::fnv1a32(name)), DType::u32, {}, loc), loc);
}
Array fold_in(const Array& key, const Array& number, Loc loc) {
  return apply(OpKind::fold_in, {key, number}, {}, loc);
}

Array make_key(uint64_t seed) {
  const uint32_t words[2] = {static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)};
  return Array(runtime::Buffer::copy_of(Shape{DType::u32, {{"word", 2}}}, words));
}

Array stop_gradient(const Array& x, Loc loc) {
  // A custom op whose backward rule gives zeros.
  auto identity = [&] {
    ir::Block b;
    b.results = {b.add_param(x.use_dtype() ? x.shape().with_dtype(*x.use_dtype()) : x.shape())};
    return b;
  };
  ir::Block backward;
  const Shape s = identity().values[0];
  ir::Builder builder(backward);
  backward.add_param(s);
  backward.results = {builder.splat(0, s)};
  return apply_n(OpKind::custom, {x}, {}, {identity(), identity(), backward}, loc)[0];
}

Array broadcast(const Array& x, const std::vector<Axis>& axes, Loc loc) {
  std::vector<Axis> all;
  for (const Axis& a : axes)
    if (!x.has(a.name)) all.push_back(a);
  all.insert(all.end(), x.shape().axes.begin(), x.shape().axes.end());
  return broadcast_to(x, all, loc);
}

Array broadcast_to(const Array& x, const std::vector<Axis>& axes, Loc loc) {
  if (x.shape().axes == axes) return x;
  return apply(OpKind::broadcast, {x}, ir::shape_attrs(axes), loc);
}

Array transpose(const Array& x, const Axes& order, Loc loc) {
  if (x.shape().names() == order) return x;
  return apply(OpKind::transpose, {x}, {{"axes", order}}, loc);
}

Array rename(const Array& x, const std::string& from, const std::string& to, Loc loc) {
  return rename(x, Axes{from}, Axes{to}, loc);
}
Array rename(const Array& x, const Axes& from, const Axes& to, Loc loc) {
  if (from == to) return x;
  return apply(OpKind::rename, {x}, {{"from", from}, {"to", to}}, loc);
}

Array split_axis(const Array& x, const std::string& axis, const std::vector<Axis>& into, Loc loc) {
  ir::Attrs attrs = ir::shape_attrs(into);
  attrs.set("axis", axis);
  return apply(OpKind::split_axis, {x}, std::move(attrs), loc);
}

Array merge_axes(const Array& x, const Axes& axes, const std::string& into, Loc loc) {
  if (axes.empty()) trace_fail("merge_axes: no axes", loc);
  const int64_t first = x.shape().find(axes[0]);
  bool neighbours = first >= 0;
  for (size_t i = 0; i < axes.size(); ++i)
    neighbours &= x.shape().find(axes[i]) == first + static_cast<int64_t>(i);
  Array y = x;
  if (!neighbours) {
    Axes order;
    for (const auto& name : x.shape().names()) {
      if (name == axes[0])
        order.insert(order.end(), axes.begin(), axes.end());
      else if (std::find(axes.begin(), axes.end(), name) == axes.end())
        order.push_back(name);
    }
    y = transpose(x, order, loc);
  }
  return apply(OpKind::merge_axes, {y}, {{"axes", axes}, {"axis", into}}, loc);
}

Array slice(const Array& x, const std::string& axis, int64_t start, int64_t size, int64_t stride, Loc loc) {
  return apply(OpKind::slice, {x}, {{"axis", axis}, {"start", start}, {"size", size}, {"stride", stride}},
               loc);
}

Array index(const Array& x, const std::string& axis, int64_t i, Loc loc) {
  const int64_t n = x.size(axis);
  if (i < 0 || i >= n)
    trace_fail(fmt::format("index: {} is outside axis \"{}\" of size {}", i, axis, n), loc);
  return unstack(slice(x, axis, i, 1, 1, loc), axis, loc)[0];
}

Array pad(const Array& x, const std::string& axis, int64_t low, int64_t high, Loc loc) {
  return apply(OpKind::pad, {x}, {{"axis", axis}, {"low", low}, {"high", high}}, loc);
}

Array concat(const std::vector<Array>& xs, const std::string& axis, Loc loc) {
  return apply(OpKind::concat, xs, {{"axis", axis}}, loc);
}

std::vector<Array> split(const Array& x, const std::string& axis, const std::vector<int64_t>& sizes,
                         Loc loc) {
  return apply_n(OpKind::split, {x}, {{"axis", axis}, {"sizes", sizes}}, {}, loc);
}

Array stack(const std::vector<Array>& xs, const std::string& axis, int64_t position, Loc loc) {
  return apply(OpKind::stack, xs, {{"axis", axis}, {"position", position}}, loc);
}

std::vector<Array> unstack(const Array& x, const std::string& axis, Loc loc) {
  return apply_n(OpKind::unstack, {x}, {{"axis", axis}}, {}, loc);
}

void throw_unstack_count(const Array& x, const std::string& axis, size_t count, Loc loc) {
  trace_fail(fmt::format("unstack: axis \"{}\" of {} has size {}, {} values were asked for", axis,
                         x.shape().str(), x.size(axis), count),
             loc);
}

Array reverse(const Array& x, const std::string& axis, Loc loc) {
  return apply(OpKind::reverse, {x}, {{"axis", axis}}, loc);
}

Array gather(const Array& table, const std::string& axis, const Array& index, Loc loc) {
  return apply(OpKind::gather, {table, index, i64_zero(loc)}, {{"axis", axis}}, loc);
}

Array dynamic_slice(const Array& x, const std::string& axis, const Array& start, int64_t size, Loc loc) {
  return apply(OpKind::dynamic_slice, {x, start}, {{"axis", axis}, {"size", size}}, loc);
}

Array dynamic_update_slice(const Array& x, const std::string& axis, const Array& update, const Array& start,
                           Loc loc) {
  return apply(OpKind::dynamic_update_slice, {x, update, start}, {{"axis", axis}}, loc);
}

Array paged_write(const Array& pool, const Array& rows, const Array& place, const PageAxes& axes, Loc loc) {
  return apply(OpKind::paged_write, {pool, rows, place},
               {{"page", axes.page}, {"slot", axes.slot}, {"row", axes.row}}, loc);
}

}  // namespace ostro
