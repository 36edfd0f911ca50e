// Layers of experts with their experts, their hidden axis and the positions split over workers.
#include "ostro/spmd/hand_written_for_test.h"

namespace ostro::spmd {
namespace {

using ir::OpKind;

const Axis kExperts{"experts", 5}, kSlot{"slot", 2};

// The layer and its gradients: x, up, down, gate, expert, the cotangent -> y, dx, dup, ddown, dgate.
ir::Program layer(DType dtype, numerics::LeafTable leaves) {
  return traced(
      "experts",
      {{dtype, {kBatch, kPos, kEmbed}},
       {dtype, {kExperts, kEmbed, kMlp}},
       {dtype, {kExperts, kMlp, kEmbed}},
       {DType::f32, {kBatch, kPos, kSlot}},
       {DType::i32, {kBatch, kPos, kSlot}},
       {DType::f32, {kBatch, kPos, kEmbed}}},
      std::move(leaves), [&](const Arrays& a) {
        const Array hidden = expert_dot(a[0], a[1], "experts", a[4], {"embed"}, dtype);
        const Array y = expert_dot(hidden, a[2], "experts", a[4], {"mlp"});
        const Array combined = sum(a[3] * y, {"slot"}, Order::kSerial);
        const Array dy = a[3] * a[5];
        const Array back = cast(dy, dtype);
        const Array dhidden = cast(expert_dot(back, a[2], "experts", a[4], {"embed"}), dtype);
        return Arrays{
            combined, sum(expert_dot(dhidden, a[1], "experts", a[4], {"mlp"}), {"slot"}, Order::kSerial),
            expert_outer(a[0], dhidden, kExperts, a[4]), expert_outer(hidden, back, kExperts, a[4])};
      });
}

std::vector<runtime::Buffer> inputs_of(const ir::Program& p, bool one) {
  auto in = test_inputs(p, kExperts.size);
  auto experts = in[4].mutable_as<int32_t>();
  if (one) std::fill(experts.begin(), experts.end(), 3);
  experts[0] = -1, experts[7] = static_cast<int32_t>(kExperts.size);
  return in;
}

PartitionOptions mesh_of(const ir::Program& p, std::vector<Axis> mesh,
                         std::vector<std::pair<std::string, std::string>> compute) {
  PartitionOptions o = model_mesh(p, 2);
  o.sharding.mesh.axes = std::move(mesh);
  o.sharding.compute = std::move(compute);
  return o;
}

TEST_CASE("experts over workers: each has its own, and rows are selected") {
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t workers : {2, 3})
      for (bool one : {false, true}) {
        const ir::Program p = layer(dtype, {{{"experts", 3}}});
        const PartitionOptions o = mesh_of(p, {{"model", workers}}, {{"experts", "model"}});
        const Partition parts = check_parts(p, o, inputs_of(p, one), true);
        for (const auto& program : parts.programs) {
          CHECK(count_ops(program->body, OpKind::all_reduce_bits) == 4);
          CHECK(count_ops(program->body, OpKind::all_reduce_tree) == 0);
          CHECK_FALSE(has_value_with(program->body, {kExperts}));
        }
      }
}

TEST_CASE("the hidden axis over workers: partials of leaves, as of a dot") {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ir::Program p = layer(dtype, {{{"mlp", 4}}});
    const auto in = inputs_of(p, false);
    const Partition parts = check_parts(p, mesh_of(p, {{"model", 2}}, {{"mlp", "model"}}), in, true);
    for (const auto& program : parts.programs) {
      CHECK(count_ops(program->body, OpKind::all_reduce_tree) == 2);
      CHECK_FALSE(has_value_with(program->body, {kMlp}));
    }
    const ir::Program uncut = layer(dtype, {});
    const auto refused = partition(uncut, mesh_of(uncut, {{"model", 2}}, {{"mlp", "model"}}));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message().find("expert_dot: axis \"mlp\"") != std::string::npos);
    CHECK(refused.error().message().find("numerics.leaves.mlp") != std::string::npos);
  }
}

TEST_CASE("positions over workers: the weights' gradients are joined by the tree over leaves") {
  for (DType dtype : {DType::f32, DType::bf16})
    for (bool one : {false, true}) {
      const ir::Program p = layer(dtype, {{{"pos", 2}}});
      const auto in = inputs_of(p, one);
      const Partition parts = check_parts(p, mesh_of(p, {{"model", 2}}, {{"pos", "model"}}), in, true);
      for (const auto& program : parts.programs)
        CHECK(count_ops(program->body, OpKind::all_reduce_tree) == 2);
    }
}

TEST_CASE("experts, hidden axis and positions over a mesh of three axes") {
  const numerics::LeafTable leaves{{{"experts", 2}, {"mlp", 2}, {"pos", 2}}};
  const ir::Program p = layer(DType::bf16, leaves);
  const PartitionOptions o = mesh_of(p, {{"sequence", 2}, {"expert", 2}, {"model", 2}},
                                     {{"pos", "sequence"}, {"experts", "expert"}, {"mlp", "model"}});
  const Partition parts = check_parts(p, o, inputs_of(p, false), true);
  for (const auto& program : parts.programs) {
    CHECK_FALSE(has_value_with(program->body, {kExperts}));
    CHECK_FALSE(has_value_with(program->body, {kMlp}));
  }
}

// The layer with products of integers, as models have it, and its gradients: x, up, down, gate, expert, the
// cotangent, the key of the draws -> y, dx, dup, ddown.
ir::Program integer_layer() {
  const int64_t block = 100;  // an expert's rows and the hidden axis are more than one
  return traced("experts of integers",
                {{DType::bf16, {kBatch, kPos, kEmbed}},
                 {DType::f32, {kExperts, kEmbed, kMlp}},
                 {DType::f32, {kExperts, kMlp, kEmbed}},
                 {DType::f32, {kBatch, kPos, kSlot}},
                 {DType::i32, {kBatch, kPos, kSlot}},
                 {DType::f32, {kBatch, kPos, kEmbed}},
                 {DType::u32, {{"word", 2}}}},
                {}, [&](const Arrays& a) {
                  const Array first = full(3, DType::i64, {});
                  const auto product = [&](const Quantized& rows, const Array& w, const Axes& over) {
                    return cast(expert_dot_int8(rows, quantize(w, over, block), "experts", a[4], over, block),
                                DType::bf16);
                  };
                  const auto dithered = [&](const Array& dy, const Axes& over) {
                    return quantize_dithered(dy, over, block, a[6], first);
                  };
                  const Array hidden = product(quantize(a[0], {"embed"}, block), a[1], {"embed"});
                  const Array y = product(quantize(hidden, {"mlp"}, block), a[2], {"mlp"});
                  const Array back = cast(a[3] * a[5], DType::bf16);
                  const Array dhidden = product(dithered(back, {"embed"}), a[2], {"embed"});
                  const Array dx = product(dithered(dhidden, {"mlp"}), a[1], {"mlp"});
                  return Arrays{sum(a[3] * cast(y, DType::f32), {"slot"}, Order::kSerial),
                                sum(cast(dx, DType::f32), {"slot"}, Order::kSerial),
                                expert_outer_int8(a[0], dhidden, kExperts, a[4], block, a[6], first),
                                expert_outer_int8(hidden, back, kExperts, a[4], block, a[6], first)};
                });
}

TEST_CASE("experts of integers: any axis over workers, without leaves, and the draws of the whole") {
  const ir::Program p = integer_layer();
  const auto in = inputs_of(p, false);
  using Map = std::vector<std::pair<std::string, std::string>>;
  for (const int64_t workers : {2, 3})
    for (const char* axis : {"experts", "mlp", "pos"}) {
      const Partition parts = check_parts(p, mesh_of(p, {{"model", workers}}, {{axis, "model"}}), in, true);
      const std::string split = axis;
      for (const auto& program : parts.programs) {
        CHECK(count_ops(program->body, OpKind::all_reduce_tree) == 0);
        CHECK(count_ops(program->body, OpKind::all_reduce_bits) == (split == "experts" ? 4 : 0));
        CHECK(has_value_with(program->body, {kExperts}) == (split != "experts"));
      }
      // A worker that draws as if its part were the beginning is seen.
      if (split != "mlp") continue;
      check_differs(p,
                    with_ops(parts,
                             [](ir::Op& op) {
                               if (op.kind == OpKind::expert_outer_int8)
                                 std::fill(op.operands.begin() + 6, op.operands.end(), op.operands[3]);
                             }),
                    in);
    }
  const Map three{{"pos", "sequence"}, {"experts", "expert"}, {"mlp", "model"}};
  check_parts(p, mesh_of(p, {{"sequence", 2}, {"expert", 2}, {"model", 2}}, three), in, true);
}

}  // namespace
}  // namespace ostro::spmd
