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

}  // namespace
}  // namespace ostro::spmd
