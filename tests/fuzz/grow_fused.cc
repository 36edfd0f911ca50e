// Indexed ops, attention, cross-entropy, ops on whole arrays, control flow.
#include <algorithm>

#include "generator.h"

namespace ostro::fuzz {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

}  // namespace

void Frame::grow_indexed() {
  Rng& rng = world_.rng;
  const Shape shape = some_shape(some_float());
  const Axis axis = rng.pick(shape.axes);
  const ValueId origin = builder_.i64_scalar(world_.smooth || rng.chance(0.8) ? 0 : 1);
  switch (rng.below(4)) {
    case 0: {
      std::vector<Axis> index_axes;
      for (const Axis& a : world_.some_axes())
        if (a.name != axis.name && index_axes.size() < 2) index_axes.push_back(a);
      return emit(OpKind::gather, {value(shape), value({DType::i32, index_axes}), origin},
                  {{"axis", axis.name}});
    }
    case 1: {
      std::vector<Axis> index_axes;
      for (const Axis& a : shape.axes)
        if (rng.chance(0.6)) index_axes.push_back(a);
      Strings batch;
      if (index_axes.size() > 1 && rng.chance(0.3)) batch.push_back(index_axes[0].name);
      return emit(OpKind::scatter_add, {value(shape), value({DType::i32, index_axes}), origin},
                  {{"axis", std::string("row")},
                   {"size", rng.between(2, 9)},
                   {"position", int64_t{0}},
                   {"batch", batch}});
    }
    case 2: {
      const int64_t size = rng.between(1, axis.size);
      return emit(OpKind::dynamic_slice, {value(shape), value(ir::scalar(DType::i32))},
                  {{"axis", axis.name}, {"size", size}});
    }
    default: {
      Shape update = shape;
      update.axes[static_cast<size_t>(shape.find(axis.name))].size = rng.between(1, axis.size);
      std::vector<Axis> start_axes;
      const bool per_example = !world_.smooth && rng.chance(0.4);  // has no derivative
      if (per_example && shape.rank() > 1 && shape.axes[0].name != axis.name) start_axes = {shape.axes[0]};
      return emit(OpKind::dynamic_update_slice,
                  {value(shape), fresh(update), value({DType::i32, start_axes})}, {{"axis", axis.name}});
    }
  }
}

void Frame::grow_attention() {
  Rng& rng = world_.rng;
  const DType dtype = some_float();
  const Axis batch = world_.axis("batch"), pos = world_.axis("pos"), heads = world_.axis("kv_heads"),
             group = world_.axis("group"), dim{"head_dim", rng.pick(std::vector<int64_t>{2, 4, 8, 16})};
  const Axis keys{"key_pos", rng.chance(0.2) && pos.size < 100 ? 130 : pos.size};
  const Shape q_shape{dtype, {batch, pos, heads, group, dim}}, k_shape{dtype, {batch, keys, heads, dim}};
  Ids operands{value(q_shape), value(k_shape), value(k_shape), builder_.i64_scalar(rng.chance(0.8) ? 0 : 2)};
  Attrs attrs{{"query", std::string("pos")},
              {"key", std::string("key_pos")},
              {"head_dim", std::string("head_dim")},
              {"scale", rng.chance(0.5) ? 0.25 : 0.3535},
              {"causal", rng.below(2)}};
  if (rng.chance(0.25)) attrs.set("soft_cap", 2.0);
  if (rng.chance(0.25)) attrs.set("window", rng.between(1, 6));
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
  if (rng.chance(0.25)) {
    attrs.set("sink", int64_t{1});
    operands.push_back(value({DType::f32, {heads, group}}));
  }
  const auto forward = builder_.add_n(OpKind::attention, operands, attrs);
  pool_.push_back(forward[0]);
  outputs.push_back(forward[0]);
  if (world_.smooth) return;  // m and r have no derivative
  if (rng.chance(0.5)) outputs.insert(outputs.end(), {forward[1], forward[2]});
  if (rng.chance(0.4)) return;
  operands.insert(operands.begin() + 3, {forward[0], forward[1], forward[2], value(q_shape)});
  emit(OpKind::attention_grad, operands, attrs);
}

void Frame::grow_cross_entropy() {
  Rng& rng = world_.rng;
  const Axis vocab = world_.axis("vocab");
  const std::vector<Axis> rows{world_.axis("batch"), world_.axis("pos")};
  const ValueId logits = value({DType::f32, {rows[0], rows[1], vocab}});
  const ValueId target = value({DType::i32, rows}), origin = builder_.i64_scalar(0);
  Attrs attrs{{"axis", vocab.name}};
  if (rng.chance(0.5)) attrs.set("z", 0.125);
  const auto forward = builder_.add_n(OpKind::cross_entropy, {logits, target, origin}, attrs);
  pool_.push_back(tame(forward[0]));
  outputs.push_back(forward[0]);
  if (world_.smooth) return;  // m, r and lse have no derivative
  if (rng.chance(0.5)) outputs.insert(outputs.end(), {forward[1], forward[2], forward[3]});
  if (rng.chance(0.4)) return;
  attrs.set("dtype", std::string(ir::dtype_name(some_float())));
  emit(OpKind::cross_entropy_grad,
       {logits, target, forward[1], forward[2], forward[3], value({DType::f32, rows}), origin}, attrs);
}

void Frame::grow_state() {
  Rng& rng = world_.rng;
  if (rng.chance(0.5)) {
    const Shape shape = some_shape(DType::f32);
    Strings axes;
    Ints cells;
    for (const Axis& a : shape.axes)
      if (rng.chance(0.5)) {
        axes.push_back(a.name);
        cells.push_back(rng.chance(0.3) ? a.size : rng.between(1, std::min<int64_t>(4, a.size)));
      }
    return emit(OpKind::box_sumsq, {value(shape)}, {{"axes", axes}, {"cells", cells}});
  }
  const Shape shape = some_shape(rng.chance(0.1) ? DType::boolean : some_number());
  Ids operands{value(shape)};
  Ints sizes;
  for (const Axis& a : shape.axes) {
    operands.push_back(builder_.i64_scalar(0));
    sizes.push_back(a.size);
  }
  emit(OpKind::fingerprint, operands, {{"global_sizes", sizes}});
}

void Frame::grow_scan() {
  Rng& rng = world_.rng;
  const Axis axis{"layers", rng.between(1, 4)};
  Frame body(world_, this);
  Ids carry_params, x_params, carries, xs;
  for (int64_t i = rng.between(1, 2); i > 0; --i) {
    const Shape shape = some_shape(some_float());
    carry_params.push_back(body.block.add_param(shape));
    body.add_to_pool(carry_params.back());
    carries.push_back(value(shape));
  }
  for (int64_t i = rng.between(0, 2); i > 0; --i) {
    const Shape shape = some_shape(some_float());
    x_params.push_back(body.block.add_param(shape));
    body.add_to_pool(x_params.back());
    Shape stacked = shape;
    stacked.axes.insert(stacked.axes.begin(), axis);
    xs.push_back(value(stacked));
  }
  for (int64_t i = rng.between(3, 7); i > 0; --i) body.grow(false);
  for (ValueId carry : carry_params) {
    const Shape shape = body.block.shape(carry);
    const ValueId mixed = body.builder().add(OpKind::add, {carry, body.value(shape)});
    body.block.results.push_back(body.builder().cast(body.builder().add(OpKind::tanh, {mixed}), shape.dtype));
  }
  for (size_t i = 0; i < std::min<size_t>(2, body.outputs.size()); ++i)
    if (!body.block.shape(body.outputs[i]).has(axis.name)) body.block.results.push_back(body.outputs[i]);
  body.block.params = body.captured_params;
  body.block.params.insert(body.block.params.end(), carry_params.begin(), carry_params.end());
  body.block.params.insert(body.block.params.end(), x_params.begin(), x_params.end());
  Ids operands = body.captured;
  const auto consts = static_cast<int64_t>(operands.size());
  operands.insert(operands.end(), carries.begin(), carries.end());
  operands.insert(operands.end(), xs.begin(), xs.end());
  emit(OpKind::scan, operands,
       {{"axis", axis.name},
        {"length", axis.size},
        {"consts", consts},
        {"carries", static_cast<int64_t>(carries.size())},
        {"reverse", rng.below(2)}},
       {body.block});
}

// cond, or a custom function with its own derivative: tanh, whose backward is ct * (1 - y * y).
void Frame::grow_branch() {
  const Shape shape = some_shape(DType::f32);
  if (world_.rng.chance(0.5)) {
    std::vector<ir::Block> branches(2);
    for (size_t i = 0; i < 2; ++i) {
      branches[i].add_param(shape);
      branches[i].add_param(shape);
      ir::Builder b(branches[i]);
      const OpKind first = i == 0 ? OpKind::mul : OpKind::sub,
                   second = i == 0 ? OpKind::sin : OpKind::sigmoid;
      branches[i].results = {b.add(second, {b.add(first, {0, 1})})};
    }
    return emit(OpKind::cond, {value(ir::scalar(DType::boolean)), value(shape), value(shape)}, {}, branches);
  }
  ir::Block function, forward, backward;
  function.add_param(shape);
  function.results = {ir::Builder(function).add(OpKind::tanh, {0})};
  forward.add_param(shape);
  const ValueId y = ir::Builder(forward).add(OpKind::tanh, {0});
  forward.results = {y, y};
  backward.add_param(shape);
  backward.add_param(shape);
  ir::Builder b(backward);
  const ValueId slope = b.add(OpKind::sub, {b.splat(1, shape), b.add(OpKind::mul, {0, 0})});
  backward.results = {b.add(OpKind::mul, {1, slope})};
  emit(OpKind::custom, {value(shape)}, {}, {function, forward, backward});
}

}  // namespace ostro::fuzz
