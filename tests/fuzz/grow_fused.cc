// Attention and cross-entropy, with the forms that their derivatives use.
#include "generator.h"

#include "ostro/ir/program/attention_limits.h"

namespace ostro::fuzz {

Frame::Ids Frame::grow_attention(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Axis batch = world_.axis("batch"), pos = world_.axis("pos"), heads = world_.axis("kv_heads"),
             group = world_.axis("group"),
             dim{"head_dim", rng.pick(std::vector<int64_t>{1, 2, 4, 8, 16, 20})};
  const Axis keys{"key_pos", rng.chance(0.2) && pos.size < 100 ? 130 : pos.size};
  const Shape q_shape{dtype, {batch, pos, heads, group, dim}}, k_shape{dtype, {batch, keys, heads, dim}};
  Ids operands{value(q_shape), value(k_shape), value(k_shape), builder_.i64_scalar(rng.chance(0.8) ? 0 : 2)};
  Attrs attrs{{"query", std::string("pos")},
              {"key", std::string("key_pos")},
              {"head_dim", std::string("head_dim")},
              {"scale", rng.chance(0.5) ? 0.25 : static_cast<double>(rng.between(1, 1000)) / 1000},
              {"causal", rng.below(2)}};
  if (rng.chance(0.25)) attrs.set("soft_cap", 2.0);
  if (rng.chance(0.25)) attrs.set("window", rng.between(1, 6));
  if (!world_.smooth && rng.chance(0.25)) attrs.set("int8_slices", ir::kInt8Slices);
  if (rng.chance(0.25)) {
    attrs.set("segments", int64_t{1});
    operands.push_back(value({DType::i32, {batch, pos}}));
    operands.push_back(value({DType::i32, {batch, keys}}));
  }
  if (rng.chance(0.2)) {
    attrs.set("prefix", int64_t{1});
    operands.push_back(value({DType::i32, {batch}}));
  }
  if (rng.chance(0.2)) {
    attrs.set("key_limit", int64_t{1});
    operands.push_back(value({DType::i32, {batch}}));
  }
  if (rng.chance(0.2)) {
    attrs.set("visible", int64_t{1});
    const std::vector<Axis> axes =
        rng.chance(0.7) ? std::vector<Axis>{batch, pos, keys} : std::vector<Axis>{keys};
    operands.push_back(value({DType::boolean, axes}));
  }
  if (rng.chance(0.25)) {
    attrs.set("sink", int64_t{1});
    operands.push_back(value({DType::f32, {heads, group}}));
  }
  const Ids forward = emit(OpKind::attention, operands, attrs);
  if (kind == OpKind::attention || world_.smooth) return forward;
  if (rng.chance(0.2)) attrs.set("partial", int64_t{1});
  operands.insert(operands.begin() + 3, {forward[0], forward[1], forward[2], value(q_shape)});
  return emit(kind, operands, attrs);
}

// Places, pages and positions are made from values of the pool, so that none lies outside and no place
// repeats.
Frame::Ids Frame::grow_paged(OpKind kind, DType dtype) {
  Rng& rng = world_.rng;
  const Axis row{"row", rng.between(1, 6)}, page{"page", rng.between(1, 3)}, slot{"slot", ir::kPageSlots},
      heads = world_.axis("kv_heads"), group = world_.axis("group"), entry{"entry", rng.between(1, 2)};
  const Axis k_dim{"head_dim", rng.pick(std::vector<int64_t>{1, 2, 5})},
      v_dim{"head_dim", rng.chance(0.5) ? k_dim.size : rng.between(1, 4)};
  const auto pool_of = [&](const Axis& dim) {
    return Shape{dtype, rng.chance(0.5) ? std::vector<Axis>{page, heads, dim, slot}
                                        : std::vector<Axis>{page, slot, heads, dim}};
  };
  // Between 1 - n and n - 1.
  const auto below = [&](const std::vector<Axis>& axes, int64_t n) {
    const Shape shape{DType::i32, axes};
    return builder_.add(OpKind::rem, {value(shape), splat(static_cast<double>(n), shape)});
  };
  const Attrs axes{{"page", page.name}, {"slot", slot.name}, {"row", row.name}};
  // Row r at place first + 19 r; the first may be negative, so that rows are left out.
  const ValueId steps = builder_.add(OpKind::mul, {builder_.add(OpKind::iota, {builder_.i64_scalar(0)},
                                                                {{"axis", row.name}, {"size", row.size}}),
                                                   splat(19, {DType::i32, {row}})});
  const ValueId place = builder_.add(OpKind::add, {steps, builder_.broadcast(below({}, 20), {row})});
  const auto written = [&](const Shape& pool, const Axis& dim) {
    return emit(OpKind::paged_write, {value(pool), value({dtype, {row, heads, dim}}), place}, axes);
  };
  const Shape k_pool = pool_of(k_dim), v_pool = pool_of(v_dim);
  const Ids keys = written(k_pool, k_dim);
  if (kind == OpKind::paged_write) return keys;
  Attrs attrs = axes;
  attrs.set("entry", entry.name);
  attrs.set("head_dim", std::string("head_dim"));
  attrs.set("scale", 0.25);
  if (rng.chance(0.25)) attrs.set("soft_cap", 2.0);
  if (rng.chance(0.25)) attrs.set("window", rng.between(1, 150));
  if (rng.chance(0.25)) attrs.set("int8_slices", ir::kInt8Slices);
  const ValueId table = builder_.add(OpKind::abs, {below({row, entry}, page.size)});
  Ids operands{value({dtype, {row, heads, group, k_dim}}), keys[0],
               rng.chance(0.5) ? value(v_pool) : written(v_pool, v_dim)[0], table,
               below({row}, entry.size * ir::kPageSlots)};
  if (rng.chance(0.25)) {
    attrs.set("sink", int64_t{1});
    operands.push_back(value({DType::f32, {heads, group}}));
  }
  return emit(kind, operands, attrs);
}

Frame::Ids Frame::grow_cross_entropy(OpKind kind) {
  Rng& rng = world_.rng;
  const Axis vocab = world_.axis("vocab");
  const std::vector<Axis> rows{world_.axis("batch"), world_.axis("pos")};
  const ValueId logits = value({DType::f32, {rows[0], rows[1], vocab}});
  const ValueId target = value({DType::i32, rows}), origin = builder_.i64_scalar(0);
  Attrs attrs{{"axis", vocab.name}};
  if (rng.chance(0.5)) attrs.set("z", 0.125);
  const Ids forward = emit(OpKind::cross_entropy, {logits, target, origin}, attrs);
  if (kind == OpKind::cross_entropy || world_.smooth) return forward;
  if (kind == OpKind::cross_entropy_sum) return emit(kind, {logits, forward[1]}, {{"axis", vocab.name}});
  attrs.set("dtype", std::string(ir::dtype_name(some_float())));
  return emit(kind, {logits, target, forward[1], forward[2], forward[3], value({DType::f32, rows}), origin},
              attrs);
}

}  // namespace ostro::fuzz
