// Products of integers in a Linear: what is quantised, over what, and with which draws.
#include "ostro/nn/integer_products.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/grad/value_and_grad.h"
#include "ostro/nn/moe_experts.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"
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

struct Mixture {
  Array x;
  Moe moe;
  OSTRO_FIELDS(x, moe)
};

// y of a mixture of three experts with two slots, and the gradients of x, gate_up and down; dy is constant.
std::vector<Array> run_mixture(const Mixture& mixture, const Precision& precision, const Draws& draws,
                               const Array& expert, const Array& gate, const Array& dy) {
  const auto run = jit([&](const Mixture& m) {
    auto [y, gradients] = value_and_grad([&](const Mixture& of) {
      const Mixture used = compute(of, precision, draws);
      const Array y = apply_experts(used.moe, used.x, Routed{expert, gate, {}, {}},
                                    [](const Array& g) { return cast(g, DType::f32); });
      return std::vector<Array>{sum(cast(y, DType::f32) * dy, {"batch", "pos", "embed"}, Order::kSerial), y};
    })(m);
    return std::vector<Array>{y[1], gradients.x, gradients.moe.gate_up, gradients.moe.down};
  });
  return run(mixture);
}

TEST_CASE("experts of integers: an expert's gradient is cut over its own rows, draws go by token and slot") {
  DefaultInterpreter use;
  const Axes tokens{"batch", "pos"};
  const std::vector<Axis> rows{{"batch", 2}, {"pos", 3}, {"slot", 2}};
  const Axis experts{"experts", 3};
  const Array x = cast(f32({{"batch", 2}, {"pos", 3}, {"embed", 5}}, mixed_waves(30, 0.2)), DType::bf16);
  const Array expert = i32(rows, {2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 2, 0});  // expert 1 has no row
  const Array gate = f32(rows, mixed_waves(12, 0.7));
  const Array dy = f32({{"batch", 2}, {"pos", 3}, {"embed", 5}}, mixed_waves(30, 0.5));
  Moe moe;
  moe.gate_up = f32({experts, {"embed", 5}, {"gate_up", 2}, {"mlp", 4}}, mixed_waves(120, 0.1));
  moe.down = f32({experts, {"mlp", 4}, {"embed", 5}}, mixed_waves(60, 0.6));
  const Draws draws{make_key(9), scalar_of(7)};
  const auto out = run_mixture({x, moe}, Precision(DType::bf16, kBlock), draws, expert, gate, dy);
  const auto cut = [&](const Array& a, const Axes& over) { return quantize(a, over, kBlock); };
  const auto product = [&](const Quantized& a, const Array& w, const Axes& over, DType type) {
    return expert_dot_int8(a, cut(w, over), "experts", expert, over, kBlock, type);
  };
  const Array pair = product(cut(x, {"embed"}), moe.gate_up, {"embed"}, DType::bf16);
  const auto [g, up] = unstack<2>(pair, "gate_up");
  const Array inner = cast(g, DType::f32) * cast(up, DType::f32);
  const Array hidden = cast(inner, DType::bf16);
  const Array y =
      cast(sum(Operand(gate) * Operand(product(cut(hidden, {"mlp"}), moe.down, {"mlp"}, DType::bf16)),
               {"slot"}, Order::kSerial),
           DType::bf16);
  CHECK(same_bits(out[0], y));

  const Array key = fold_in(draws.key, "model/moe/down");
  const Array back = cast(Operand(cast(cast(dy, DType::bf16), DType::f32)) * Operand(gate), DType::bf16);
  const Array drows = transpose(back, {"batch", "pos", "slot", "embed"});
  const Array ddown = expert_outer_int8(hidden, drows, experts, expert, kBlock, key, draws.first);
  CHECK(same_bits(out[3], ddown));
  const Array dhidden =
      product(quantize_dithered(drows, {"embed"}, kBlock, key, draws.first), moe.down, {"embed"}, DType::f32);
  const Array dinner = cast(cast(dhidden, DType::bf16), DType::f32);
  const Array dg = cast(Operand(dinner) * Operand(cast(up, DType::f32)), DType::bf16),
              du = cast(Operand(dinner) * Operand(cast(g, DType::f32)), DType::bf16);
  const Array dpair = stack({dg, du}, "gate_up", 3);
  const Array up_key = fold_in(draws.key, "model/moe/gate_up");
  CHECK(same_bits(out[2], expert_outer_int8(x, dpair, experts, expert, kBlock, up_key, draws.first)));
  const Axes outputs{"gate_up", "mlp"};
  const Array dx = sum(product(quantize_dithered(dpair, outputs, kBlock, up_key, draws.first), moe.gate_up,
                               outputs, DType::f32),
                       {"slot"}, Order::kSerial);
  CHECK(same_bits(out[1], cast(dx, DType::bf16)));

  // Without dithering, and with another first example, the gradients differ; the forward product does not.
  const Draws other{draws.key, scalar_of(8)};
  const auto later = run_mixture({x, moe}, Precision(DType::bf16, kBlock), other, expert, gate, dy);
  CHECK(same_bits(later[0], out[0]));
  CHECK_FALSE(same_bits(later[2], out[2]));
  CHECK_FALSE(same_bits(later[3], out[3]));

  // What no model has is refused.
  Moe wide = compute(moe, Precision(DType::bf16, kBlock), draws);
  wide.wide = true;
  CHECK_THROWS_WITH_AS(
      (void)apply_experts(wide, x, Routed{expert, gate, {}, {}}, [](const Array& g) { return g; }),
      doctest::Contains("have no integer products"), TraceError);
}

TEST_CASE("an expert's gradient depends on its own rows alone, wherever they lie") {
  DefaultInterpreter use;
  const Axis experts{"experts", 3};
  const auto rows = [&](int64_t n, const char* name) { return std::vector<Axis>{{"batch", n}, {name, 4}}; };
  const Array a = f32(rows(6, "in"), mixed_waves(24, 0.3)), b = f32(rows(6, "out"), mixed_waves(24, 0.8));
  const Array key = make_key(4);
  const auto outer = [&](const Array& left, const Array& right, std::vector<int32_t> chosen) {
    const auto n = static_cast<int64_t>(chosen.size());
    return expert_outer_int8(left, right, experts, i32({{"batch", n}}, std::move(chosen)), kBlock, key,
                             scalar_of(0));
  };
  const Array two = outer(a, b, {2, 0, 2, 2, 1, 2}), moved = outer(a, b, {2, 1, 2, 2, 0, 2});
  CHECK(same_bits(index(two, "experts", 2), index(moved, "experts", 2)));
  // All rows of one expert: the product of a matrix.
  const Array all = index(outer(a, b, {1, 1, 1, 1, 1, 1}), "experts", 1);
  const Axes batch{"batch"};
  const Array dense = dot_int8(quantize(a, batch, kBlock),
                               quantize_dithered(b, batch, kBlock, key, scalar_of(0)), batch, kBlock);
  CHECK(same_bits(all, dense));
  CHECK_FALSE(same_bits(all, index(two, "experts", 2)));
  // A row outside the table adds nothing.
  CHECK(same_bits(index(two, "experts", 2), index(outer(a, b, {2, -1, 2, 2, 3, 2}), "experts", 2)));
}

}  // namespace
}  // namespace ostro::nn
