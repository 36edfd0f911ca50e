// Initial parameters of layers.
#include <utility>

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
  norm.axes.clear();
  for (const Axis& axis : axes) norm.axes.push_back(axis.name);
  norm.weight = norm.one_plus ? zeros(all) : ones(all);
  if (o.norm_bias) norm.bias = zeros(all);
  return norm;
}

DecoderBlock init_block(const DecoderOptions& o, const std::string& path, int64_t count, const Array& key) {
  const Axis layers{"layers", count}, embed{"embed", o.hidden_dim}, kv{"kv_heads", o.num_kv_heads},
      head_dim{"head_dim", *o.head_dim}, mlp{"mlp", o.intermediate_dim}, group{"group", o.group()},
      qkv{"qkv", o.group() + 2};
  // A sum over as many inputs as the model is wide stays as large when these grow (muP).
  const double deviation =
      o.mup_base_dim ? o.initializer_range / numerics::sqrt_f64(o.width_ratio()) : o.initializer_range;
  const auto linear = [&](const char* name, const Axes& in, const std::vector<Axis>& in_axes,
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
  b.attention.qkv = linear("/attention/qkv", {"embed"}, {embed}, {kv, qkv, head_dim}, o.qkv_bias,
                           {"qkv", {{"q_proj", o.group()}, {"k_proj"}, {"v_proj"}}});
  if (o.qk_norm == QkNorm::kHead) {
    b.attention.q_norm = b.attention.k_norm = init_norm(o, {layers}, {head_dim});
  } else if (o.qk_norm == QkNorm::kWhole) {
    b.attention.q_norm = init_norm(o, {layers}, {kv, group, head_dim});
    b.attention.k_norm = init_norm(o, {layers}, {kv, head_dim});
  }
  if (o.attention_sink) b.attention.sink_bias = zeros({layers, kv, group});
  b.attention.o = linear("/attention/o", {"kv_heads", "group", "head_dim"}, {kv, group, head_dim}, {embed},
                         o.out_bias, {"", {{"o_proj"}}});
  if (behind) b.attention_post_norm = init_norm(o, {layers}, {embed});
  if (before) b.mlp_norm = init_norm(o, {layers}, {embed});
  if (o.num_experts > 0) {
    const Axis experts{"experts", o.num_experts};
    const auto draw = [&](const char* name, const std::vector<Axis>& axes) {
      return nn::trunc_normal(key, path + name, axes, o.initializer_range);
    };
    b.moe.router.routing = o.routing();
    b.moe.router.weight = draw("/moe/router/weight", {layers, embed, experts});
    if (o.router_bias_update_rate > 0) {
      b.moe.router.bias = zeros({layers, experts});
      b.moe.router.bias_rate = o.router_bias_update_rate;
    }
    if (o.track_expert_load)
      b.moe.load = full(1.0 / static_cast<double>(o.num_experts), DType::f32, {layers, experts});
    const std::vector<Axis> gate_up = {layers, experts, embed, {"gate_up", 2}, mlp},
                            down = {layers, experts, mlp, embed};
    if (o.int8_row_groups > 0) {
      b.moe.gate_up = zeros(gate_up, DType::i8);
      b.moe.gate_up_scales = zeros({layers, experts, {nn::kScaleGroupsAxis, 1}, {"gate_up", 2}, mlp});
      b.moe.down = zeros(down, DType::i8);
      b.moe.down_scales = zeros({layers, experts, {nn::kScaleGroupsAxis, o.int8_row_groups}, embed});
    } else {
      b.moe.gate_up = draw("/moe/gate_up", gate_up);
      b.moe.down = draw("/moe/down", down);
    }
    if (behind) b.mlp_post_norm = init_norm(o, {layers}, {embed});
    return b;
  }
  if (o.gated_mlp)
    b.mlp.gate_up = linear("/mlp/gate_up", {"embed"}, {embed}, {{"gate_up", 2}, mlp}, o.mlp_bias,
                           {"gate_up", {{"gate_proj"}, {"up_proj"}}});
  else
    b.mlp.up = linear("/mlp/up", {"embed"}, {embed}, {mlp}, o.mlp_bias, {"", {{"up_proj"}}});
  b.mlp.down = linear("/mlp/down", {"mlp"}, {mlp}, {embed}, o.mlp_bias, {"", {{"down_proj"}}});
  if (behind) b.mlp_post_norm = init_norm(o, {layers}, {embed});
  return b;
}

}  // namespace ostro::models
