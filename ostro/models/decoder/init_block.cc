// init_block: initial parameters of layers.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/models/decoder/block.h"
#include "ostro/nn/init.h"
#include "ostro/numerics/functions.h"

namespace ostro::models {

nn::Norm init_norm(const DecoderOptions& o, const std::vector<Axis>& leading, const std::vector<Axis>& axes) {
  std::vector<Axis> all = leading;
  all.insert(all.end(), axes.begin(), axes.end());
  nn::Norm norm;
  norm.centered = o.norm == NormKind::kLayer;
  norm.one_plus = o.norm_scale == NormScale::kOnePlusWeight;
  norm.epsilon = o.layer_norm_epsilon;
  norm.in_f32 = o.released();
  norm.axes.clear();
  for (const Axis& axis : axes) norm.axes.push_back(axis.name);
  norm.weight = norm.one_plus ? zeros(all) : ones(all);
  if (o.norm_bias) norm.bias = zeros(all);
  return norm;
}

namespace {

// A Linear at a path below the layer: (name, in, axes of in, axes of out, whether it has a bias, parts).
using MakeLinear = std::function<nn::Linear(const char*, const Axes&, const std::vector<Axis>&,
                                            const std::vector<Axis>&, bool, nn::Fused)>;

// The epsilon of the norms of latents is no option: all models with latent attention have this one, also if
// their other norms have another.
constexpr double kLatentEpsilon = 1e-6;

void init_latent(const DecoderOptions& o, const Axis& layers, const MakeLinear& linear,
                 LatentProjections& p) {
  const Axis embed{"embed", o.hidden_dim}, kv{"kv_heads", o.num_kv_heads}, group{"group", o.group()},
      head_dim{"head_dim", *o.head_dim}, q_rank{"q_rank", o.q_lora_rank}, kv_rank{"kv_rank", o.kv_lora_rank},
      kv_latent{"kv_latent", o.kv_lora_rank + o.qk_rope_head_dim},
      kv_dim{"kv_dim", o.qk_nope_head_dim + o.v_head_dim};
  const auto norm = [&](const Axis& axis) {
    nn::Norm out = init_norm(o, {layers}, {axis});
    out.epsilon = kLatentEpsilon;
    return out;
  };
  const bool two = o.q_lora_rank > 0;
  if (two) {
    p.q_a = linear("/attention/latent/q_a", {"embed"}, {embed}, {q_rank}, o.qkv_bias, {"", {{"q_a_proj"}}});
    p.q_norm = norm(q_rank);
  }
  const Axis& q_in = two ? q_rank : embed;
  p.q = linear("/attention/latent/q", {q_in.name}, {q_in}, {kv, group, head_dim}, false,
               {"", {{two ? "q_b_proj" : "q_proj"}}});
  p.kv_a = linear("/attention/latent/kv_a", {"embed"}, {embed}, {kv_latent}, o.qkv_bias,
                  {"", {{"kv_a_proj_with_mqa"}}});
  p.kv_norm = norm(kv_rank);
  p.kv_b =
      linear("/attention/latent/kv_b", {"kv_rank"}, {kv_rank}, {kv, kv_dim}, false, {"", {{"kv_b_proj"}}});
}

void init_experts(const DecoderOptions& o, const Axis& layers, const std::string& path, const Array& key,
                  const MakeLinear& linear, nn::Moe& moe) {
  const Axis embed{"embed", o.hidden_dim}, mlp{"mlp", o.intermediate_dim}, experts{"experts", o.num_experts},
      shared{"shared_mlp", o.shared_intermediate_dim}, gate_up{"gate_up", 2};
  const auto draw = [&](const char* name, const std::vector<Axis>& axes) {
    return nn::trunc_normal(key, path + name, axes, o.initializer_range);
  };
  moe.wide = o.released();
  moe.router.routing = o.routing();
  moe.router.weight = draw("/moe/router/weight", {layers, embed, experts});
  if (o.router_bias || o.router_bias_update_rate > 0) {
    moe.router.bias = zeros({layers, experts});
    moe.router.bias_rate = o.router_bias_update_rate;
  }
  if (o.track_expert_load)
    moe.load = full(1.0 / static_cast<double>(o.num_experts), DType::f32, {layers, experts});
  const std::vector<Axis> gate_up_axes = {layers, experts, embed, gate_up, mlp},
                          down_axes = {layers, experts, mlp, embed};
  if (o.int8_row_groups > 0) {
    moe.gate_up = zeros(gate_up_axes, DType::i8);
    moe.gate_up_scales = zeros({layers, experts, {nn::kScaleGroupsAxis, 1}, gate_up, mlp});
    moe.down = zeros(down_axes, DType::i8);
    moe.down_scales = zeros({layers, experts, {nn::kScaleGroupsAxis, o.int8_row_groups}, embed});
  } else {
    moe.gate_up = draw("/moe/gate_up", gate_up_axes);
    moe.down = draw("/moe/down", down_axes);
  }
  if (o.shared_intermediate_dim == 0) return;
  moe.shared.gate_up = linear("/moe/shared/gate_up", {"embed"}, {embed}, {gate_up, shared}, false,
                              {"gate_up", {{"gate_proj"}, {"up_proj"}}});
  moe.shared.down =
      linear("/moe/shared/down", {"shared_mlp"}, {shared}, {embed}, false, {"", {{"down_proj"}}});
  if (o.shared_expert_gate) moe.shared_gate = draw("/moe/shared_gate", {layers, embed});
}

// Axes of one name have one size: a mixture's experts have the axis "mlp".
void init_mlp(const DecoderOptions& o, const LayerSpec& spec, const MakeLinear& linear, DecoderMlp& p) {
  const Axis embed{"embed", o.hidden_dim},
      mlp = spec.dense ? Axis{"dense_mlp", o.dense_intermediate_dim} : Axis{"mlp", o.intermediate_dim};
  if (o.gated_mlp)
    p.gate_up = linear("/mlp/gate_up", {"embed"}, {embed}, {{"gate_up", 2}, mlp}, o.mlp_bias,
                       {"gate_up", {{"gate_proj"}, {"up_proj"}}});
  else
    p.up = linear("/mlp/up", {"embed"}, {embed}, {mlp}, o.mlp_bias, {"", {{"up_proj"}}});
  p.down = linear("/mlp/down", {mlp.name}, {mlp}, {embed}, o.mlp_bias, {"", {{"down_proj"}}});
}

}  // namespace

DecoderBlock init_block(const DecoderOptions& o, const LayerSpec& spec, const std::string& path,
                        int64_t count, const Array& key) {
  const Axis layers{"layers", count}, embed{"embed", o.hidden_dim}, kv{"kv_heads", o.num_kv_heads},
      head_dim{"head_dim", *o.head_dim}, group{"group", o.group()}, qkv{"qkv", o.group() + 2};
  // A sum over the inputs of a matrix keeps its size when the model becomes wider (muP).
  const double deviation =
      o.mup_base_dim ? o.initializer_range / numerics::sqrt_f64(o.width_ratio()) : o.initializer_range;
  const MakeLinear linear = [&](const char* name, const Axes& in, const std::vector<Axis>& in_axes,
                                const std::vector<Axis>& out_axes, bool bias, nn::Fused fused) {
    std::vector<Axis> axes = {layers}, bias_axes = {layers};
    axes.insert(axes.end(), in_axes.begin(), in_axes.end());
    axes.insert(axes.end(), out_axes.begin(), out_axes.end());
    bias_axes.insert(bias_axes.end(), out_axes.begin(), out_axes.end());
    nn::Linear made{{}, bias ? zeros(bias_axes) : Array(), in, std::move(fused)};
    if (o.int8_row_groups > 0) {
      made.weight = zeros(axes, DType::i8);
      std::vector<Axis> scale_axes = {layers, {nn::kScaleGroupsAxis, in.size() > 1 ? o.int8_row_groups : 1}};
      scale_axes.insert(scale_axes.end(), out_axes.begin(), out_axes.end());
      made.scales = zeros(scale_axes);
    } else {
      made.weight = nn::trunc_normal(key, path + name + "/weight", axes, deviation);
    }
    return made;
  };
  const bool before = o.norm_place != NormPlace::kPost, behind = o.norm_place != NormPlace::kPre;
  DecoderBlock b;
  if (before) b.attention_norm = init_norm(o, {layers}, {embed});
  if (o.kv_lora_rank > 0)
    init_latent(o, layers, linear, b.attention.latent);
  else
    b.attention.qkv = linear("/attention/qkv", {"embed"}, {embed}, {kv, qkv, head_dim}, o.qkv_bias,
                             {"qkv", {{"q_proj", o.group()}, {"k_proj"}, {"v_proj"}}});
  if (o.qk_norm == QkNorm::kHead) {
    b.attention.q_norm = b.attention.k_norm = init_norm(o, {layers}, {head_dim});
  } else if (o.qk_norm == QkNorm::kWhole) {
    b.attention.q_norm = init_norm(o, {layers}, {kv, group, head_dim});
    b.attention.k_norm = init_norm(o, {layers}, {kv, head_dim});
  }
  if (o.attention_sink) b.attention.sink_bias = zeros({layers, kv, group});
  const Axis value = o.kv_lora_rank > 0 ? Axis{"value_dim", o.v_head_dim} : head_dim;
  b.attention.o = linear("/attention/o", {"kv_heads", "group", value.name}, {kv, group, value}, {embed},
                         o.out_bias, {"", {{"o_proj"}}});
  if (behind) b.attention_post_norm = init_norm(o, {layers}, {embed});
  if (before) b.mlp_norm = init_norm(o, {layers}, {embed});
  if (o.num_experts > 0 && !spec.dense)
    init_experts(o, layers, path, key, linear, b.moe);
  else
    init_mlp(o, spec, linear, b.mlp);
  if (behind) b.mlp_post_norm = init_norm(o, {layers}, {embed});
  return b;
}

}  // namespace ostro::models
