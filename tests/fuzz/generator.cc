#include "generator.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::fuzz {

World::World(uint64_t seed) : rng(seed) {
  const int64_t pos = rng.chance(0.12) ? rng.between(129, 140) : rng.between(3, 9);
  axes = {{"batch", rng.between(1, 3)},
          {"pos", pos},
          {"embed", rng.pick(std::vector<int64_t>{3, 8, 17, 33, 64})},
          {"mlp", rng.pick(std::vector<int64_t>{5, 16, 24, 40})},
          {"vocab", rng.pick(std::vector<int64_t>{7, 16, 33, 70})},
          {"kv_heads", rng.between(1, 3)},
          {"group", rng.between(1, 3)},
          {"experts", rng.between(2, 3)}};
  if (rng.chance(0.6)) focus_family = rng.below(34);
  if (rng.chance(0.5)) focus_dtype = static_cast<int>(rng.below(6));
  for (const char* name : {"kv_heads", "mlp", "vocab", "pos", "experts", "embed"})
    if (rng.chance(0.4)) leaves.axes.emplace_back(name, rng.between(2, 4));
  for (size_t i = leaves.axes.size(); i > 1; --i)
    std::swap(leaves.axes[i - 1], leaves.axes[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
}

const Axis& World::axis(const std::string& name) const {
  for (const Axis& a : axes)
    if (a.name == name) return a;
  OSTRO_CHECK(false, "no axis {}", name);
}

std::vector<Axis> World::some_axes() {
  std::vector<Axis> chosen;
  int64_t count = 1;
  for (int64_t i = rng.between(1, 3); i > 0; --i) {
    const Axis& a = rng.pick(axes);
    if (std::find(chosen.begin(), chosen.end(), a) != chosen.end() || count * a.size > 4000) continue;
    chosen.push_back(a);
    count *= a.size;
  }
  return chosen;
}

ValueId Frame::fresh(const Shape& shape) {
  const ValueId v = block.add_param(shape);
  if (outer_ != nullptr) {
    captured.push_back(outer_->value(shape));
    captured_params.push_back(v);
  }
  return v;
}

ValueId Frame::value(const Shape& shape) {
  if (world_.rng.chance(0.55)) {
    std::vector<ValueId> fits;
    const bool floating = shape.dtype == DType::f32 || shape.dtype == DType::bf16;
    for (ValueId v : pool_) {
      const Shape& s = block.shape(v);
      if (s.count() * 4 < shape.count() && world_.rng.chance(0.95)) continue;  // would be nearly constant
      const bool s_floating = s.dtype == DType::f32 || s.dtype == DType::bf16;
      const bool contained = std::all_of(s.axes.begin(), s.axes.end(), [&](const Axis& a) {
        return shape.has(a.name) && shape.size_of(a.name) == a.size;
      });
      if (contained && (s.dtype == shape.dtype || (floating && s_floating))) fits.push_back(v);
    }
    if (!fits.empty()) {
      // The latest half is preferred, so that programs get deep.
      const auto n = static_cast<int64_t>(fits.size());
      const ValueId v =
          fits[static_cast<size_t>(n - 1 - world_.rng.below(world_.rng.chance(0.6) ? (n + 1) / 2 : n))];
      return builder_.broadcast(builder_.cast(v, shape.dtype), shape.axes);
    }
  }
  const ValueId v = fresh(shape);
  pool_.push_back(v);
  return v;
}

ValueId Frame::float_from_pool() {
  std::vector<ValueId> floats;
  for (ValueId v : pool_)
    if (block.shape(v).dtype == DType::f32 || block.shape(v).dtype == DType::bf16) floats.push_back(v);
  return floats.empty() ? value(some_shape(DType::f32)) : builder_.cast(world_.rng.pick(floats), DType::f32);
}

DType Frame::some_number() {
  const std::vector<DType> numbers{DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u32};
  if (world_.focus_dtype >= 0 && world_.rng.chance(0.6))
    return numbers[static_cast<size_t>(world_.focus_dtype)];
  return world_.rng.pick(numbers);
}

ValueId Frame::tame(ValueId v) {
  const DType dtype = block.shape(v).dtype;
  if (!ir::is_floating(dtype)) return v;
  const ValueId x = dtype == DType::bf16 ? builder_.cast(v, DType::f32) : v;
  const Shape shape = block.shape(x);
  const ValueId finite = builder_.add(OpKind::is_finite, {x});
  const ValueId low = builder_.add(OpKind::max, {x, splat(-4, shape)});
  const ValueId bounded = builder_.add(OpKind::min, {low, splat(4, shape)});
  return builder_.cast(builder_.add(OpKind::select, {finite, bounded, splat(0.25, shape)}), dtype);
}

void Frame::emit(OpKind kind, const Ids& operands, Attrs attrs, std::vector<ir::Block> regions) {
  const auto results = builder_.add_n(kind, operands, std::move(attrs), std::move(regions));
  // These cannot leave the range of their operands.
  const bool bounded = ir::is_layout(kind) || kind == OpKind::pad || kind == OpKind::broadcast ||
                       kind == OpKind::gather || kind == OpKind::cast || kind == OpKind::use ||
                       kind == OpKind::tanh || kind == OpKind::sin || kind == OpKind::cos ||
                       kind == OpKind::erf || kind == OpKind::sigmoid || kind == OpKind::neg ||
                       kind == OpKind::abs || kind == OpKind::select || kind == OpKind::min ||
                       kind == OpKind::max || kind == OpKind::sort;
  for (ValueId v : results) {
    // Few of what is likely to hold one value only.
    const Shape& shape = block.shape(v);
    const bool dull = kind == OpKind::is_finite || shape.dtype == DType::boolean || shape.count() <= 6;
    const double odds = dull || kind == OpKind::constant ? 0.02 : 0.35;
    if (world_.rng.chance(odds)) outputs.push_back(v);
    if (block.shape(v).count() > 0) pool_.push_back(bounded ? v : tame(v));
  }
}

void Frame::grow(bool allow_scan) {
  Rng& rng = world_.rng;
  int64_t family = rng.below(world_.smooth ? 22 : 34);
  // Mostly in scans, whose few ops would reach rare families too seldom.
  if (world_.focus_family >= 0 && !world_.smooth && rng.chance(outer_ != nullptr ? 0.6 : 0.1))
    family = world_.focus_family;
  if (family < 6) return grow_elementwise();
  if (family < 10) return grow_layout();
  if (family < 12) return grow_dot();
  if (family < 14) return grow_reduction();
  if (family < 16) return grow_indexed();
  if (family < 17) return grow_attention();
  if (family < 18) return grow_cross_entropy();
  if (family < 20) return allow_scan ? grow_scan() : grow_dot();
  if (family < 22) return grow_branch();
  if (family < 26) return grow_integer();
  if (family < 28) return grow_elementwise();
  if (family < 31) return grow_source();
  return grow_state();
}

}  // namespace ostro::fuzz
