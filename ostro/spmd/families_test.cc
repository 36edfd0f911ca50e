// Families of decoders over a mesh: layers of unlike kinds with windows and norms over all heads, parallel
// blocks with biases, learned positions, sinks and caps.
#include "ostro/spmd/llama_for_test.h"

namespace ostro::spmd {
namespace {

models::DecoderOptions gemma_like() {
  models::DecoderOptions o("gemma3");
  o.num_layers = 4;
  o.sliding_window = 40;
  o.layer_pattern = {models::LayerKind::kSliding, models::LayerKind::kSliding, models::LayerKind::kFull};
  o.attn_logit_softcapping = 4;
  o.final_logit_softcapping = 3;
  return o;
}

models::DecoderOptions neox_like() {
  models::DecoderOptions o("gpt_neox");
  o.num_layers = 2;
  o.partial_rotary_factor = 0.7;
  return o;
}

// A norm over all heads, sinks, learned positions: what is reduced over, or lies along, an axis that is cut.
models::DecoderOptions whole_norm() {
  models::DecoderOptions o("decoder");
  o.num_layers = 2;
  o.qk_norm = models::QkNorm::kWhole;
  o.attention_sink = true;
  o.norm_place = models::NormPlace::kPost;
  o.positions = models::Positions::kLearned;
  o.head_bias = true;
  return o;
}

TEST_CASE("families over two workers along model, and in shards along embed") {
  for (const models::DecoderOptions& family : {gemma_like(), neox_like(), whole_norm()})
    for (const DType compute : {DType::f32, DType::bf16}) {
      CAPTURE(family.family->name);
      size_t n = 0;
      const ir::Program p =
          test_decoder(family, compute, 140, {{{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}, {"pos", 2}}}, &n);
      PartitionOptions o = llama_options(p, n);
      o.sharding.mesh.axes = {{"model", 2}};
      o.sharding.compute = kModel;
      const auto in = llama_inputs(p, n);
      check_parts(p, o, in, true);
      o.sharding.parameter = {{"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}};
      check_parts(p, o, in, true);
      const ir::Program rows = test_decoder(family, compute, 9, {}, &n);
      PartitionOptions shards = llama_options(rows, n);
      shards.sharding.mesh.axes = {{"data", 2}};
      shards.sharding.parameter = {{"embed", "data"}};
      check_parts(rows, shards, llama_inputs(rows, n), true);
    }
}

}  // namespace
}  // namespace ostro::spmd
