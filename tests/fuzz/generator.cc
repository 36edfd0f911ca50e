#include "generator.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::fuzz {
namespace {

bool narrow(DType d) { return d == DType::f32 || d == DType::bf16; }

// Ops whose results cannot leave the range of their operands.
bool bounded(OpKind k) {
  for (OpKind b : {OpKind::pad, OpKind::broadcast, OpKind::gather, OpKind::cast, OpKind::use, OpKind::tanh,
                   OpKind::sin, OpKind::cos, OpKind::erf, OpKind::sigmoid, OpKind::neg, OpKind::abs,
                   OpKind::select, OpKind::min, OpKind::max, OpKind::sort, OpKind::top_k, OpKind::attention})
    if (k == b) return true;
  return ir::is_layout(k);
}

}  // namespace

ValueId Frame::fresh(const Shape& shape) {
  return outer_ == nullptr ? block.add_param(shape) : capture(outer_->value(shape));
}

ValueId Frame::input(const Shape& shape) {
  return outer_ == nullptr ? block.add_param(shape) : capture(outer_->input(shape));
}

ValueId Frame::capture(ValueId of_outer) {
  captured.push_back(of_outer);
  captured_params.push_back(block.add_param(outer_->block.shape(of_outer)));
  return captured_params.back();
}

ValueId Frame::value(const Shape& shape) {
  if (world_.rng.chance(0.55)) {
    Ids fits;
    for (ValueId v : pool_) {
      const Shape& s = block.shape(v);
      if (s.count() * 4 < shape.count() && world_.rng.chance(0.95)) continue;  // would be nearly constant
      const bool contained = std::all_of(s.axes.begin(), s.axes.end(), [&](const Axis& a) {
        return shape.has(a.name) && shape.size_of(a.name) == a.size;
      });
      if (contained && (s.dtype == shape.dtype || (narrow(s.dtype) && narrow(shape.dtype))))
        fits.push_back(v);
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
  Ids floats;
  for (ValueId v : pool_)
    if (narrow(block.shape(v).dtype)) floats.push_back(v);
  return floats.empty() ? value(some_shape(DType::f32)) : builder_.cast(world_.rng.pick(floats), DType::f32);
}

DType Frame::beside(DType dtype) { return narrow(dtype) ? some_float() : dtype; }

ValueId Frame::tame(ValueId v) {
  const DType dtype = block.shape(v).dtype;
  if (!ir::is_floating(dtype)) return v;
  const ValueId x = dtype == DType::bf16 ? builder_.cast(v, DType::f32) : v;
  const Shape shape = block.shape(x);
  const ValueId finite = builder_.add(OpKind::is_finite, {x});
  const ValueId low = builder_.add(OpKind::max, {x, splat(-4, shape)});
  const ValueId limited = builder_.add(OpKind::min, {low, splat(4, shape)});
  return builder_.cast(builder_.add(OpKind::select, {finite, limited, splat(0.25, shape)}), dtype);
}

Frame::Ids Frame::emit(OpKind kind, const Ids& operands, Attrs attrs, std::vector<ir::Block> regions) {
  const Ids all = builder_.add_n(kind, operands, std::move(attrs), std::move(regions));
  emitted_ = block.ops.size() - 1;
  if (outer_ != nullptr && world_.rng.chance(0.4)) block.ops.back().label = "x";  // for policies of remat
  Ids results = all;
  // The others have no derivative.
  if (world_.smooth && (kind == OpKind::attention || kind == OpKind::cross_entropy)) results.resize(1);
  for (ValueId v : results) {
    // Few of what is likely to hold one value only.
    const Shape& shape = block.shape(v);
    const bool dull = kind == OpKind::is_finite || kind == OpKind::constant || shape.count() <= 6 ||
                      shape.dtype == DType::boolean;
    if (world_.rng.chance(dull ? 0.02 : 0.35)) outputs.push_back(v);
    if (block.shape(v).count() > 0) pool_.push_back(bounded(kind) ? v : tame(v));
  }
  return results;
}

void Frame::keep(const Ids& results) {
  const auto v =
      std::find_if(results.begin(), results.end(), [&](ValueId r) { return block.shape(r).count() > 0; });
  OSTRO_CHECK(v != results.end(), "an op of the fuzzer has only empty results");
  Shape shape = block.shape(*v);
  const bool boolean = shape.dtype == DType::boolean;
  const OpKind kind = block.ops[emitted_].kind;
  const bool joins = kind == OpKind::stack || kind == OpKind::concat;  // as results they are made otherwise
  if (!boolean && !ir::is_integer(shape.dtype) && kind != OpKind::constant && !joins)
    return kept.push_back(*v);
  // What may well hold one value only is shown by what it does to random numbers, enough of them.
  if (shape.count() < 16 && !shape.has("embed")) shape.axes.push_back(world_.axis("embed"));
  const ValueId x = builder_.broadcast(*v, shape.axes);
  const Shape numbers = boolean ? shape.with_dtype(DType::f32) : shape;
  kept.push_back(boolean ? builder_.add(OpKind::select, {x, input(numbers), input(numbers)})
                         : builder_.add(OpKind::add, {x, input(numbers)}));
}

void Frame::grow(int64_t steps, const std::vector<Combination>& targets) {
  const bool in_body = outer_ != nullptr;
  std::vector<Combination> here, in_scan;
  for (const Combination& t : targets) (t.place == Place::in_scan && !in_body ? in_scan : here).push_back(t);
  // Steps: a target of `here`, the scan of the others, or one at random.
  const auto scan = static_cast<int64_t>(here.size()), random = scan + 1;
  std::vector<int64_t> order(static_cast<size_t>(steps), random);
  for (int64_t i = 0; i < scan; ++i) order.push_back(i);
  if (!in_scan.empty()) order.push_back(scan);
  world_.rng.shuffle(order);
  for (int64_t step : order) {
    if (step == random) {
      const OpKind kind = world_.some_kind(!in_body);
      grow_op(kind, world_.some_dtype(kind));
    } else if (step == scan) {
      grow_scan(some_float(), in_scan);
    } else {
      const Combination& target = here[static_cast<size_t>(step)];
      Ids results = grow_op(target.kind, target.dtype);
      if (target.place == Place::leaf_cut) {
        while (contracted_axes(block.ops[emitted_], block).empty())  // an outer product
          results = grow_op(target.kind, target.dtype);
        world_.cut(world_.rng.pick(contracted_axes(block.ops[emitted_], block)));
      }
      keep(results);
    }
  }
}

Frame::Ids Frame::grow_op(OpKind kind, DType dtype) {
  using K = OpKind;
  if (kind <= K::fold_in) return grow_source(kind, dtype);
  if (kind == K::cast || kind == K::use || kind == K::select) return grow_conversion(kind, dtype);
  if (kind < K::cast) return grow_unary(kind, dtype);
  if (kind < K::select) return grow_binary(kind, dtype);
  if (kind == K::concat || kind == K::split || kind == K::stack || kind == K::unstack)
    return grow_joining(kind, dtype);
  if (kind <= K::reverse) return grow_layout(kind, dtype);
  if (kind == K::paged_write || kind == K::paged_attention) return grow_paged(kind, dtype);
  if (kind <= K::scatter_add) return grow_indexed(kind, dtype);
  if (kind == K::sort || kind == K::top_k || kind == K::argmax) return grow_ordered(kind, dtype);
  if (kind == K::dequantize) return grow_dequantize();
  if (kind == K::quantize || kind == K::dot_int8) return grow_integers(kind, dtype);
  if (kind == K::expert_dot_int8 || kind == K::expert_outer_int8) return grow_integer_experts(kind, dtype);
  if (kind < K::dot) return grow_reduction(kind, dtype);
  if (kind == K::dot) return grow_dot(dtype);
  if (kind == K::expert_dot || kind == K::expert_outer) return grow_experts(kind, dtype);
  if (kind <= K::attention_grad) return grow_attention(kind, dtype);
  if (kind <= K::cross_entropy_grad) return grow_cross_entropy(kind);
  if (kind <= K::fingerprint) return grow_state(kind, dtype);
  if (kind == K::scan) return grow_scan(dtype, {});
  return kind == K::cond ? grow_cond(dtype) : grow_custom();
}

}  // namespace ostro::fuzz
