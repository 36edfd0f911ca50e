// A decoder with experts over a mesh axis: forward, gradients and balance, with experts alone over it, with
// positions over it too, and beside model.
#include "ostro/spmd/hand_written_for_test.h"
#include "ostro/spmd/llama_for_test.h"
#include "ostro/spmd/wrong_experts_for_test.h"

namespace ostro::spmd {
namespace {

using ir::OpKind;

constexpr int64_t kFiveExperts = 5;

models::DecoderOptions mixture() {
  models::DecoderOptions o("mixtral");
  o.num_layers = 2;
  o.num_experts = kFiveExperts;
  o.track_expert_load = true;
  o.router_bias_update_rate = 0.01;
  o.router_aux_loss_coef = 0.1;
  o.router_z_loss_coef = 0.01;
  return o;
}

enum class Routes { kDrawn, kTies, kOne };

// kTies: all scores are equal, so that the lower numbers get all rows; kOne: all rows choose expert 3 first.
std::vector<runtime::Buffer> routed_inputs(const ir::Program& p, size_t parameters, Routes routes) {
  std::vector<runtime::Buffer> in = llama_inputs(p, parameters);
  for (size_t i = 0; i < parameters; ++i) {
    const std::string& path = p.result_names[2 + i];
    auto x = in[i].mutable_as<float>();
    if (path.ends_with("router/weight") && routes != Routes::kDrawn) std::fill(x.begin(), x.end(), 0.0f);
    if (path.ends_with("router/bias") && routes != Routes::kDrawn)
      for (size_t at = 0; at < x.size(); ++at)
        x[at] = routes == Routes::kOne && at % kFiveExperts == 3 ? 1.0f : 0.0f;
  }
  return in;
}

PartitionOptions experts_over(const ir::Program& p, size_t parameters, std::vector<Axis> mesh,
                              ir::AxisMap compute) {
  PartitionOptions o = llama_options(p, parameters);
  o.sharding.mesh.axes = std::move(mesh);
  o.sharding.parameter = o.sharding.compute = std::move(compute);
  o.beside = {{"experts", "mlp"}};
  return o;
}

TEST_CASE("a mixture with its experts over workers: any number of them, without leaves") {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const int64_t workers : {2, 3, 5})
      for (const Routes routes : {Routes::kDrawn, Routes::kTies, Routes::kOne}) {
        size_t n = 0;
        const ir::Program p = test_decoder(mixture(), compute, 9, {}, &n);
        const PartitionOptions o = experts_over(p, n, {{"expert", workers}}, {{"experts", "expert"}});
        const auto in = routed_inputs(p, n, routes);
        const Partition parts = check_parts(p, o, in, workers == 3);
        for (const auto& program : parts.programs) {
          CHECK_FALSE(has_value_with(program->body, {{"experts", kFiveExperts}, {"mlp", 28}}));
          // The router computes without other workers: its weights are gathered, and rows of experts
          // selected.
          for (const OpKind kind : {OpKind::all_reduce_tree, OpKind::all_reduce_max, OpKind::all_reduce_int})
            CHECK(count_ops(program->body, kind) == 0);
          CHECK(count_ops(program->body, OpKind::all_reduce_bits) == 4);  // gate_up and down, and back
        }
        Partition wrong = parts;
        for (auto& program : wrong.programs) {
          auto shifted = std::make_shared<ir::Program>(*program);
          shift_experts(shifted->body);
          program = shifted;
        }
        check_differs(p, wrong, in);
      }
}

TEST_CASE("a mixture cut into leaves of experts, and one with positions over the same workers") {
  for (const DType compute : {DType::f32, DType::bf16}) {
    size_t n = 0;
    const ir::Program cut = test_decoder(mixture(), compute, 9, {{{"experts", 3}}}, &n);
    check_parts(cut, experts_over(cut, n, {{"expert", 2}}, {{"experts", "expert"}}),
                routed_inputs(cut, n, Routes::kDrawn));
    const ir::Program p = test_decoder(mixture(), compute, 140, {{{"mlp", 2}, {"pos", 2}}}, &n);
    const auto in = routed_inputs(p, n, Routes::kDrawn);
    const Partition parts = check_parts(
        p, experts_over(p, n, {{"expert", 2}}, {{"experts", "expert"}, {"pos", "expert"}}), in, true);
    for (const auto& program : parts.programs) {
      CHECK_FALSE(has_value_with(program->body, {{"pos", 140}, {"heads", 4}}));
      CHECK_FALSE(has_value_with(program->body, {{"experts", kFiveExperts}, {"mlp", 28}}));
    }
    check_parts(p,
                experts_over(p, n, {{"expert", 2}, {"model", 2}}, {{"experts", "expert"}, {"mlp", "model"}}),
                in, true);
  }
}

TEST_CASE("experts over workers beside shared experts, dense layers and latent attention over another axis") {
  models::DecoderOptions o("deepseek_v3");
  o.num_layers = 3;
  o.num_experts = 8, o.num_experts_per_tok = 3;
  o.kv_lora_rank = 8, o.q_lora_rank = 6, o.qk_nope_head_dim = 2, o.qk_rope_head_dim = 4, o.v_head_dim = 8;
  o.shared_intermediate_dim = 12, o.dense_intermediate_dim = 14;
  o.track_expert_load = true;
  o.router_bias_update_rate = 0.01;
  for (const DType compute : {DType::f32, DType::bf16}) {
    size_t n = 0;
    const ir::Program p =
        test_decoder(o, compute, 9, {{{"kv_heads", 2}, {"shared_mlp", 2}, {"dense_mlp", 2}}}, &n);
    const auto in = llama_inputs(p, n);
    const Partition parts =
        check_parts(p, experts_over(p, n, {{"expert", 3}}, {{"experts", "expert"}}), in, true);
    for (const auto& program : parts.programs)
      CHECK_FALSE(has_value_with(program->body, {{"experts", 8}, {"mlp", 28}}));
    const ir::AxisMap both = {
        {"experts", "expert"}, {"kv_heads", "model"}, {"shared_mlp", "model"}, {"dense_mlp", "model"}};
    const Partition tensor =
        check_parts(p, experts_over(p, n, {{"expert", 2}, {"model", 2}}, both), in, true);
    for (const auto& program : tensor.programs) {
      CHECK_FALSE(has_value_with(program->body, {{"shared_mlp", 12}}));
      CHECK_FALSE(has_value_with(program->body, {{"dense_mlp", 14}}));
    }
  }
}

}  // namespace
}  // namespace ostro::spmd
