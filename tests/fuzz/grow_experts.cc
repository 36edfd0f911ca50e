// Products with matrices that rows choose.
#include <algorithm>

#include "generator.h"

namespace ostro::fuzz {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

// Rows of one to three axes; their operands may lack some of these. Experts outside the table come along now
// and then, and tables of which some experts have no row.
Frame::Experts Frame::some_experts() {
  Rng& rng = world_.rng;
  Experts e{world_.axis("experts"), world_.some_axes(), {}, {}};
  std::erase_if(e.rows, [&](const Axis& a) { return a.name == e.axis.name; });
  const int64_t row_count = Shape{DType::f32, e.rows}.count();
  int64_t size = e.axis.size;
  for (const Axis& a : world_.some_axes()) {
    const bool of_rows = std::find(e.rows.begin(), e.rows.end(), a) != e.rows.end();
    if (of_rows || a.name == e.axis.name || size * a.size > 4000 || row_count * size * a.size > 40000)
      continue;
    (e.inner.empty() || rng.chance(0.5) ? e.inner : e.outer).push_back(a);
    size *= a.size;
  }
  return e;
}

Shape Frame::some_rows(const Experts& e, const std::vector<Axis>& rest, DType dtype) {
  std::vector<Axis> axes;
  for (const Axis& a : e.rows)
    if (world_.rng.chance(0.8)) axes.push_back(a);
  axes.insert(axes.end(), rest.begin(), rest.end());
  world_.rng.shuffle(axes);
  return Shape{dtype, axes};
}

ValueId Frame::expert_origin() {
  return builder_.i64_scalar(world_.smooth || world_.rng.chance(0.8) ? 0 : 1);
}

Frame::Ids Frame::grow_experts(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Experts e = some_experts();
  const ValueId expert = value({DType::i32, e.rows});
  const ValueId origin = expert_origin();
  if (kind == OpKind::expert_outer) {
    const Shape a = some_rows(e, e.inner, dtype), b = some_rows(e, e.outer, dtype);
    return emit(kind, {value(a), value(b), expert, origin},
                with_some_rule({{"axis", e.axis.name}, {"size", e.axis.size}}, dtype));
  }
  Strings over;
  std::vector<Axis> w{e.axis};
  for (const Axis& a : e.inner) over.push_back(a.name);
  rng.shuffle(over);
  w.insert(w.end(), e.inner.begin(), e.inner.end());
  w.insert(w.end(), e.outer.begin(), e.outer.end());
  rng.shuffle(w);
  const bool rounded = dtype == DType::bf16 && rng.chance(0.5);
  return emit(
      kind, {value(some_rows(e, e.inner, dtype)), value({dtype, w}), expert, origin},
      with_some_rule(
          {{"axis", e.axis.name}, {"over", over}, {"dtype", std::string(rounded ? "bf16" : "f32")}}, dtype));
}

// The same of integers. An operand of the outer product may have another type than the other.
Frame::Ids Frame::grow_integer_experts(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Experts e = some_experts();
  const ValueId expert = value({DType::i32, e.rows});
  const ValueId origin = expert_origin();
  const int64_t block = rng.pick(std::vector<int64_t>{1, 3, 16, 256});
  const auto type = [&] { return rng.chance(0.5) ? DType::f32 : DType::bf16; };
  if (kind == OpKind::expert_outer_int8) {
    const Shape a = some_rows(e, e.inner, dtype), b = some_rows(e, e.outer, type());
    Ids operands{value(a), value(b), expert, origin, value({DType::u32, {{"word", 2}}})};
    Attrs attrs{{"axis", e.axis.name}, {"size", e.axis.size}, {"block", block}};
    attrs.set("global_sizes", add_origins(b, operands));
    return emit(kind, operands, attrs);
  }
  Strings over;
  std::vector<Axis> inner = e.inner;
  if (inner.empty()) inner.push_back({"inner", rng.between(1, 40)});
  for (const Axis& a : inner) over.push_back(a.name);
  rng.shuffle(over);
  std::vector<Axis> w{e.axis};
  w.insert(w.end(), inner.begin(), inner.end());
  w.insert(w.end(), e.outer.begin(), e.outer.end());
  rng.shuffle(w);
  Attrs attrs{{"over", over}, {"block", block}, {"groups", std::string("blocks")}};
  const Ids a = quantized(some_rows(e, inner, type()), attrs), b = quantized({type(), w}, attrs);
  attrs.set("axis", e.axis.name);
  attrs.set("dtype", std::string(rng.chance(0.5) ? "bf16" : "f32"));
  return emit(kind, {a[0], a[1], b[0], b[1], expert, origin}, attrs);
}

}  // namespace ostro::fuzz
