// compute() with the rule of tensor cores: which products of a layer have it, and which do not.
#include <doctest/doctest.h>

#include "ostro/grad/value_and_grad.h"
#include "ostro/ir/program/product_rule.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro::nn {
namespace {

struct RuledLayer {
  Linear linear;
  Embedding table;
  Moe moe;
  OSTRO_FIELDS(linear, table, moe)
};

const Axis kEmbedAxis{"embed", 6}, kThreeExperts{"experts", 3};

// A layer of these arrays: a linear one with an adapter, a tied table, a mixture with a shared part and its
// gate.
RuledLayer ruled_layer(const Arrays& a) {
  RuledLayer layer;
  layer.linear = {a[1], {}, {"embed"}};
  layer.linear.lora = {LowRank{a[2], a[3], "", 2}};
  layer.table.weight = a[4];
  layer.moe.router.weight = a[5];
  layer.moe.gate_up = a[6];
  layer.moe.down = a[7];
  layer.moe.shared.gate_up = {a[8], {}, {"embed"}};
  layer.moe.shared.down = {a[9], {}, {"mlp"}};
  layer.moe.shared_gate = a[10];
  return layer;
}

// The products of the layer and of its gradients: with the rule, and without.
std::pair<int, int> products_of(const Precision& precision) {
  const Axis pair{"gate_up", 2}, mlp{"mlp", 4}, rank{"rank", 2};
  const auto f32 = [](std::vector<Axis> axes) { return Shape{DType::f32, std::move(axes)}; };
  const std::vector<Shape> params = {f32({{"pos", 3}, kEmbedAxis}),
                                     f32({kEmbedAxis, {"out", 5}}),
                                     f32({kEmbedAxis, rank}),
                                     f32({rank, {"out", 5}}),
                                     f32({{"vocab", 7}, kEmbedAxis}),
                                     f32({kEmbedAxis, kThreeExperts}),
                                     f32({kThreeExperts, kEmbedAxis, pair, mlp}),
                                     f32({kThreeExperts, mlp, kEmbedAxis}),
                                     f32({kEmbedAxis, pair, mlp}),
                                     f32({mlp, kEmbedAxis}),
                                     f32({kEmbedAxis})};
  const ir::Program p = trace_program("layer", params, [&](const Arrays& a) {
    const RuledLayer layer = compute(ruled_layer(a), precision);
    const Array y = layer.moe(a[0], [](const Array& g) { return cast(g, DType::f32); }).y;
    const Array sums = sum(cast(layer.linear(a[0]), DType::f32), {"out"}) +
                       sum(layer.table.attend(a[0]), {"vocab"}) + sum(cast(y, DType::f32), {"embed"});
    return Arrays{sum(sums, {"pos"})};
  });
  std::vector<int32_t> all(params.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
  const auto both = value_and_grad_block(p.body, {all.begin(), all.end()});
  REQUIRE(both.ok());
  std::pair<int, int> found;
  for (const ir::Op& op : both->ops)
    if (op.kind == ir::OpKind::dot || op.kind == ir::OpKind::expert_dot ||
        op.kind == ir::OpKind::expert_outer)
      ++(ir::is_tc16(op.attrs) ? found.first : found.second);
  return found;
}

TEST_CASE(
    "the rule of tensor cores is that of linear layers, adapters, tables, experts and their gates alone") {
  Precision precision(DType::bf16);
  const auto [none, all] = products_of(precision);
  CHECK(none == 0);
  precision.rule = ProductRule::kTc16;
  // Nine products of the layer and two gradients of each; the router's three stay as they are.
  const auto [with, without] = products_of(precision);
  CHECK(without == 3);
  CHECK(with == all - 3);
  CHECK(with == 27);
}

TEST_CASE("inner values of experts that are not rounded have no rule of tensor cores") {
  Precision precision(DType::bf16);
  precision.rule = ProductRule::kTc16;
  const Axis pair{"gate_up", 2}, mlp{"mlp", 4};
  const std::vector<Shape> params = {Shape{DType::f32, {{"pos", 3}, kEmbedAxis}},
                                     Shape{DType::f32, {kEmbedAxis, kThreeExperts}},
                                     Shape{DType::f32, {kThreeExperts, kEmbedAxis, pair, mlp}},
                                     Shape{DType::f32, {kThreeExperts, mlp, kEmbedAxis}}};
  CHECK_THROWS_WITH_AS(
      trace_program("layer", params,
                    [&](const Arrays& a) {
                      Moe moe;
                      moe.router.weight = a[1], moe.gate_up = a[2], moe.down = a[3];
                      moe.wide = true;
                      return Arrays{compute(moe, precision)(a[0], [](const Array& g) { return g; }).y};
                    }),
      doctest::Contains("compute in bf16"), TraceError);
}

}  // namespace
}  // namespace ostro::nn
