// Products of integers in a Linear: what is quantised, over what, and with which draws.
#include "ostro/nn/integer_products.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/grad/value_and_grad.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::nn {
namespace {

using namespace test;

struct Rows {
  Array x;
  std::vector<Linear> linear;
  OSTRO_FIELDS(x, linear)
};

std::vector<float> mixed_waves(int64_t n, double seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i * i) + seed)));
  return out;
}

const std::vector<Axis> kX{{"batch", 2}, {"pos", 3}, {"in", 5}}, kW{{"in", 5}, {"out", 4}},
    kY{{"batch", 2}, {"pos", 3}, {"out", 4}};
constexpr int64_t kBlock = 2;

Array scalar_of(int64_t value) { return Array(runtime::Buffer::scalar(DType::i64, value)); }

TEST_CASE(
    "a Linear of integers: product and gradients, each operand quantised along what its product contracts") {
  DefaultInterpreter use;
  const Array x = cast(f32(kX, mixed_waves(30, 0.2)), DType::bf16), w = f32(kW, mixed_waves(20, 0.9));
  const Array dy = f32(kY, mixed_waves(24, 0.4));
  const Draws draws{make_key(9), scalar_of(7)};
  const auto run = jit([&](const Rows& rows) {
    auto [y, gradients] = value_and_grad([&](const Rows& r) {
      const Linear linear = compute(r, Precision(DType::bf16, kBlock), draws).linear[0];
      const Array y = linear(r.x);
      return std::vector<Array>{sum(cast(y, DType::f32) * dy, {"batch", "pos", "out"}, Order::kSerial), y};
    })(rows);
    return std::vector<Array>{y[1], gradients.x, gradients.linear[0].weight};
  });
  const auto out = run(Rows{x, {Linear{w, {}, {"in"}}}});

  CHECK(same_bits(out[0], dot_int8(quantize(x, {"in"}, kBlock), quantize(w, {"in"}, kBlock), {"in"}, kBlock,
                                   DType::bf16)));
  // The cotangent is rounded to bf16, and drawn with the key of the matrix from example 7 on.
  const Array key = fold_in(draws.key, "model/linear/0"), ct = cast(dy, DType::bf16);
  const auto dithered = [&](const Axes& over) {
    return quantize_dithered(ct, over, kBlock, key, draws.first);
  };
  const Array dx = dot_int8(dithered({"out"}), quantize(w, {"out"}, kBlock), {"out"}, kBlock);
  const Axes tokens{"batch", "pos"};
  const Array dw = dot_int8(quantize(x, tokens, kBlock), dithered(tokens), tokens, kBlock);
  CHECK(same_bits(out[1], cast(dx, DType::bf16)));
  CHECK(same_bits(out[2], dw));
  // Another first example draws otherwise; a step without draws is another path of the same forward product.
  const Array other = dot_int8(quantize(x, tokens, kBlock),
                               quantize_dithered(ct, tokens, kBlock, key, scalar_of(8)), tokens, kBlock);
  CHECK_FALSE(same_bits(out[2], other));
  CHECK(same_bits(out[0], compute(Linear{w, {}, {"in"}}, Precision(DType::bf16, kBlock))(x)));
}

constexpr float kBetween = 64.5f / 256;  // a cotangent that lies between two integers

TEST_CASE("stacked layers draw apart, with the index of the layer") {
  DefaultInterpreter use;
  const Array w = f32({{"layers", 2}, {"in", 4}, {"out", 4}}, mixed_waves(32, 0.1));
  const Array x = cast(f32({{"batch", 2}, {"in", 4}}, mixed_waves(8, 0.3)), DType::bf16);
  const Draws draws{make_key(3), scalar_of(0)};
  const auto gradient = [&](const Array& weight) {
    return jit([&](const Linear& stacked) {
      return value_and_grad([&](const Linear& l) {
               const Linear integers = compute(Rows{x, {l}}, Precision(DType::bf16, 256), draws).linear[0];
               // Both layers get the same rows and cotangents.
               const auto step = [&](const Array& total, const Linear& layer) {
                 const Array y = cast(layer(x), DType::f32) * kBetween;
                 return total + sum(y, {"batch", "out"}, Order::kSerial);
               };
               return fold("layers", step, full(0, DType::f32, {}), integers);
             })(stacked)
          .second.weight;
    })(Linear{weight, {}, {"in"}});
  };
  const Array dy = cast(full(kBetween, DType::f32, {{"batch", 2}, {"out", 4}}), DType::bf16);
  const Array dw = gradient(w);
  for (int64_t layer : {0, 1}) {
    const Array key =
        fold_in(fold_in(draws.key, "model/linear/0"), full(static_cast<double>(layer), DType::i32, {}));
    const Array expected = dot_int8(quantize(x, {"batch"}, 256),
                                    quantize_dithered(dy, {"batch"}, 256, key, draws.first), {"batch"}, 256);
    CHECK(same_bits(index(dw, "layers", layer), expected));
  }
}

}  // namespace
}  // namespace ostro::nn
