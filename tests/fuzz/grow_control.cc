// Ops with regions.
#include <algorithm>

#include "generator.h"

namespace ostro::fuzz {

// The first operand is a constant of the loop of type `dtype`; carries and slices have any.
Frame::Ids Frame::grow_scan(DType dtype, const std::vector<Combination>& targets) {
  Rng& rng = world_.rng;
  const Axis axis{"layers", rng.between(1, 4)};
  Frame body(world_, this);
  body.add_to_pool(body.fresh(some_shape(dtype)));
  Ids carry_params, x_params, carries, xs;
  for (int64_t i = rng.between(1, 2); i > 0; --i) {
    const Shape shape = some_shape(world_.some_dtype(OpKind::scan));
    carry_params.push_back(body.block.add_param(shape));
    body.add_to_pool(carry_params.back());
    carries.push_back(value(shape));
  }
  for (int64_t i = rng.between(0, 2); i > 0; --i) {
    const Shape shape = some_shape(world_.some_dtype(OpKind::scan));
    x_params.push_back(body.block.add_param(shape));
    body.add_to_pool(x_params.back());
    Shape stacked = shape;
    stacked.axes.insert(stacked.axes.begin(), axis);
    xs.push_back(value(stacked));
  }
  body.grow(rng.between(1, 5), targets);
  for (ValueId carry : carry_params) body.block.results.push_back(body.step(carry));
  body.block.results.insert(body.block.results.end(), body.kept.begin(), body.kept.end());
  for (size_t i = 0; i < std::min<size_t>(2, body.outputs.size()); ++i)
    body.block.results.push_back(body.outputs[i]);
  body.block.params = body.captured_params;
  body.block.params.insert(body.block.params.end(), carry_params.begin(), carry_params.end());
  body.block.params.insert(body.block.params.end(), x_params.begin(), x_params.end());
  Ids operands = body.captured;
  const auto consts = static_cast<int64_t>(operands.size());
  operands.insert(operands.end(), carries.begin(), carries.end());
  operands.insert(operands.end(), xs.begin(), xs.end());
  const Ids results = emit(OpKind::scan, operands,
                           {{"axis", axis.name},
                            {"length", axis.size},
                            {"consts", consts},
                            {"carries", static_cast<int64_t>(carries.size())},
                            {"reverse", rng.below(2)}},
                           {body.block});
  const auto first_kept = results.begin() + static_cast<std::ptrdiff_t>(carries.size());
  kept.insert(kept.end(), first_kept, first_kept + static_cast<std::ptrdiff_t>(body.kept.size()));
  return results;
}

ValueId Frame::step(ValueId carry) {
  const Shape shape = block.shape(carry);
  const ValueId other = value(shape);
  if (shape.dtype == DType::boolean) return builder_.add(OpKind::bit_xor, {carry, other});
  const ValueId sum = builder_.add(OpKind::add, {carry, other});
  if (shape.dtype == DType::f64) return builder_.add(OpKind::mul, {sum, splat(0.5, shape)});
  return ir::is_integer(shape.dtype) ? sum : builder_.cast(builder_.add(OpKind::tanh, {sum}), shape.dtype);
}

Frame::Ids Frame::grow_cond(DType dtype) {
  const Shape shape = some_shape(dtype);
  const bool real = dtype == DType::f32 || dtype == DType::bf16, boolean = dtype == DType::boolean;
  std::vector<ir::Block> branches(2);
  for (size_t i = 0; i < 2; ++i) {
    branches[i].add_param(shape);
    branches[i].add_param(shape);
    ir::Builder b(branches[i]);
    const OpKind first =
        boolean ? (i == 0 ? OpKind::bit_and : OpKind::bit_or) : (i == 0 ? OpKind::mul : OpKind::sub);
    const OpKind second = i == 0 ? OpKind::sin : OpKind::sigmoid;
    const ValueId y = b.add(first, {0, 1});
    branches[i].results = {real ? b.add(second, {y}) : y};
  }
  return emit(OpKind::cond, {value(ir::scalar(DType::boolean)), value(shape), value(shape)}, {}, branches);
}

// A function with its own derivative: tanh, whose backward is ct * (1 - y * y).
Frame::Ids Frame::grow_custom() {
  const Shape shape = some_shape(DType::f32);
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
  return emit(OpKind::custom, {value(shape)}, {}, {function, forward, backward});
}

}  // namespace ostro::fuzz
