#include "random_program.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "generator.h"
#include "ostro/grad/differentiate.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/numerics/bf16.h"

namespace ostro::fuzz {
namespace {

using runtime::Buffer;

// Moderate values with zeros of both signs and ties (multiples of 1/4).
double random_number(Rng& rng) {
  if (rng.chance(0.1)) return rng.chance(0.5) ? 0.0 : -0.0;
  const double x = static_cast<double>(rng.below(4001) - 2000) / 1000.0;
  return rng.chance(0.2) ? static_cast<double>(static_cast<int64_t>(x * 4)) / 4 : x;
}

// Small: most i32 values serve as indices, targets or segments.
int64_t random_integer(Rng& rng) { return rng.chance(0.5) ? rng.below(3) : rng.between(-2, 10); }

Buffer random_buffer(Rng& rng, const ir::Shape& shape) {
  Buffer b = Buffer::empty(shape);
  auto fill = [&]<typename T>(T, auto&& draw) {
    for (T& x : b.mutable_as<T>()) x = static_cast<T>(draw());
  };
  switch (shape.dtype) {
    case ir::DType::f32: fill(float{}, [&] { return random_number(rng); }); break;
    case ir::DType::bf16:
      fill(uint16_t{}, [&] { return numerics::to_bf16(static_cast<float>(random_number(rng))).bits; });
      break;
    case ir::DType::f64: fill(double{}, [&] { return random_number(rng); }); break;
    case ir::DType::i32: fill(int32_t{}, [&] { return random_integer(rng); }); break;
    case ir::DType::i64:
      fill(int64_t{},
           [&] { return rng.chance(0.2) ? static_cast<int64_t>(rng.bits()) << 20 : random_integer(rng); });
      break;
    case ir::DType::u32:
      fill(uint32_t{}, [&] { return rng.chance(0.5) ? rng.bits() : static_cast<uint32_t>(rng.below(40)); });
      break;
    case ir::DType::i8: fill(int8_t{}, [&] { return static_cast<int8_t>(rng.between(-128, 127)); }); break;
    case ir::DType::boolean: fill(uint8_t{}, [&] { return rng.below(2); }); break;
  }
  return b;
}

// The sum of the squares of some floating values, so that cotangents differ from 1.
ir::ValueId loss_of(Frame& frame, World& world) {
  ir::Builder& b = frame.builder();
  std::vector<ir::ValueId> parts;
  for (ir::ValueId v : frame.kept) parts.push_back(b.cast(frame.tame(v), ir::DType::f32));
  for (int64_t i = world.rng.between(2, 4); i > 0; --i) parts.push_back(frame.float_from_pool());
  ir::ValueId loss = b.splat(0, ir::scalar(ir::DType::f32));
  for (ir::ValueId x : parts) {
    const ir::ValueId square = b.add(ir::OpKind::mul, {x, x});
    loss = b.add(ir::OpKind::add, {loss, b.sum(square, frame.block.shape(square).names(), "striped")});
  }
  return loss;
}

// The first `limit` floating parameters that the value depends on.
std::vector<int64_t> parameters_behind(const ir::Block& block, ir::ValueId value, size_t limit) {
  std::vector<char> needed(block.values.size(), 0);
  needed[static_cast<size_t>(value)] = 1;
  for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op)
    if (std::any_of(op->results.begin(), op->results.end(),
                    [&](ir::ValueId r) { return needed[static_cast<size_t>(r)] != 0; }))
      for (ir::ValueId v : op->operands) needed[static_cast<size_t>(v)] = 1;
  std::vector<int64_t> found;
  for (size_t i = 0; i < block.params.size() && found.size() < limit; ++i) {
    const ir::DType dtype = block.shape(block.params[i]).dtype;
    if (needed[static_cast<size_t>(block.params[i])] != 0 &&
        (dtype == ir::DType::f32 || dtype == ir::DType::bf16))
      found.push_back(static_cast<int64_t>(i));
  }
  return found;
}

// Some parameters behind the loss, and behind all that is kept.
std::vector<int64_t> differentiated_parameters(const Frame& frame, ir::ValueId loss) {
  std::set<int64_t> chosen;
  for (ir::ValueId v : frame.kept)
    for (int64_t p : parameters_behind(frame.block, v, 2)) chosen.insert(p);
  for (int64_t p : parameters_behind(frame.block, loss, 6)) chosen.insert(p);
  return {chosen.begin(), chosen.end()};
}

// A parameter that the loss does not depend on gets zeros from a constant: nothing that an engine computes.
void drop_zero_gradients(ir::Block& block, size_t first_gradient) {
  std::set<ir::ValueId> constants;
  for (const ir::Op& op : block.ops)
    if (op.kind == ir::OpKind::constant) constants.insert(op.results[0]);
  const auto gradients = block.results.begin() + static_cast<std::ptrdiff_t>(first_gradient);
  block.results.erase(
      std::remove_if(gradients, block.results.end(), [&](ir::ValueId v) { return constants.count(v) > 0; }),
      block.results.end());
}

}  // namespace

RandomCase random_case(uint64_t seed) {
  World world(seed);
  Frame frame(world, nullptr);
  frame.fresh({ir::DType::f32, {world.axis("batch"), world.axis("pos"), world.axis("embed")}});
  frame.add_to_pool(0);
  frame.grow(world.rng.between(4, 12), world.targets);

  RandomCase result;
  result.program.name = "fuzz";
  result.program.leaves = world.leaves;
  std::vector<ir::ValueId>& results = frame.block.results;
  results = frame.kept;
  results.insert(results.end(), frame.outputs.begin(),
                 frame.outputs.begin() + std::min<std::ptrdiff_t>(16, std::ssize(frame.outputs)));
  if (world.smooth) {
    results.insert(results.begin(), loss_of(frame, world));
    const auto wrt = differentiated_parameters(frame, results[0]);
    auto joint = value_and_grad_block(frame.block, wrt);
    OSTRO_CHECK(joint.ok(), "seed {}: {}", seed, joint.error().message());
    result.derivative = Derivative{frame.block, wrt, results.size()};
    result.program.body = std::move(joint).value();
    drop_zero_gradients(result.program.body, results.size());
  } else {
    results.push_back(frame.float_from_pool());
    result.program.body = frame.block;
  }
  const Status legal = ir::verify(result.program);
  OSTRO_CHECK(legal.ok(), "seed {}: {}", seed, legal.error().message());
  for (ir::ValueId p : result.program.body.params)
    result.inputs.push_back(random_buffer(world.rng, result.program.body.shape(p)));
  result.give = world.rng.chance(0.5);
  return result;
}

}  // namespace ostro::fuzz
