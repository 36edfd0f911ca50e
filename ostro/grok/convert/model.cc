#include "ostro/grok/convert/model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ostro/nn/linear.h"

namespace ostro::grok {
namespace {

constexpr int64_t kCellBytes = int64_t{64} << 20;

struct Axis {
  const char* name;
  int64_t size;
};

// Extents of a cell: of the axes that count as rows the innermost are taken whole as long as it stays small
// enough, the next one is cut, and of those before it a cell has one index.
io::Extents cell_of(const std::vector<Axis>& axes, size_t row_axes, int64_t item) {
  io::Extents cell(axes.size(), 1);
  int64_t bytes = item;
  for (size_t i = axes.size(); i-- > 0;) {
    const bool is_row = i < row_axes;
    int64_t take = axes[i].size;
    if (is_row) take = std::min(take, std::max<int64_t>(1, kCellBytes / bytes));
    cell[i] = take;
    bytes *= take;
    if (is_row && take < axes[i].size) break;
  }
  return cell;
}

// The release's number where `value` is that up to rounding: its inverse was taken on the way.
double or_release(double value, double release) {
  return std::abs(value / release - 1) < 1e-15 ? release : value;
}

// Success when nothing but Grok-1's architecture is asked for; the options that only training reads count as
// nothing.
Status check_release_architecture(const models::DecoderOptions& o) {
  const auto refuse = [](std::string_view key, const auto& value, const auto& only) {
    return unsupported(
        fmt::format("model.{} is {}; the layout of Grok-1's release can only hold {}", key, value, only));
  };
  if (o.type() != "grok") return refuse("type", o.type(), "grok");
  if (o.router_bias_update_rate != 0)
    return unsupported(
        fmt::format("model.router_bias_update_rate is {}: routers have a bias, and the layout of Grok-1's "
                    "release has none; balance experts with router_aux_loss_coef",
                    o.router_bias_update_rate));
  if (o.activation_function != models::Activation::kGeluTanh)
    return refuse("activation_function",
                  option_names(o.activation_function)[static_cast<size_t>(o.activation_function)],
                  "gelu_new");
  if (o.norm_topk_prob) return refuse("norm_topk_prob", true, false);
  if (!o.tie_word_embeddings) return refuse("tie_word_embeddings", false, true);
  if (!o.attn_logit_softcapping) return refuse("attn_logit_softcapping", "null", "a number");
  const auto* rope = std::get_if<models::RopeDefaultOptions>(&o.rope);
  if (rope == nullptr || rope->theta != 10000)
    return refuse("rope.theta", models::rope_theta(o.rope), "type default with theta 10000");
  return {};
}

}  // namespace

Result<GrokShape> grok_shape(const models::DecoderOptions& o, int64_t vocab, Dtype matrices) {
  RETURN_IF_ERROR(check_release_architecture(o));
  const GrokShape release;
  GrokShape s;
  s.vocab = vocab;
  s.embed = o.hidden_dim;
  s.layers = o.num_layers;
  s.query_heads = o.num_heads;
  s.kv_heads = o.num_kv_heads;
  s.head_dim = *o.head_dim;
  s.mlp = o.intermediate_dim;
  s.experts = o.num_experts;
  s.experts_per_token = o.num_experts_per_tok;
  s.positions = o.seq_len;
  s.embedding_multiplier = or_release(o.embedding_scale(), release.embedding_multiplier);
  s.output_multiplier = or_release(1 / o.logits_scaling, release.output_multiplier);
  const double scale = o.attention_scale();
  s.attention_multiplier = or_release(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(s.head_dim)),
                                      release.attention_multiplier);
  s.attention_cap = *o.attn_logit_softcapping;
  s.norm_eps = o.layer_norm_epsilon;
  s.matrices = matrices;
  s.row_groups = o.int8_row_groups > 0 ? o.int8_row_groups
                                       : std::gcd(std::gcd(s.query_dim(), s.mlp), release.row_groups);
  return s;
}

Result<models::DecoderOptions> decoder_options(const GrokShape& shape, const LayerRange& layers) {
  models::DecoderOptions o("grok");
  o.seq_len = shape.positions;
  o.hidden_dim = shape.embed;
  o.intermediate_dim = shape.mlp;
  o.num_layers = layers.count();
  o.num_heads = shape.query_heads;
  o.num_kv_heads = shape.kv_heads;
  o.head_dim = shape.head_dim;
  o.layer_norm_epsilon = shape.norm_eps;
  o.attn_logit_softcapping = shape.attention_cap;
  o.attention_multiplier = shape.attention_multiplier;
  o.scale_embedding = false;
  o.embedding_multiplier = shape.embedding_multiplier;
  o.logits_scaling = 1 / shape.output_multiplier;
  o.num_experts = shape.experts;
  o.num_experts_per_tok = shape.experts_per_token;
  RETURN_IF_ERROR(o.resolve());
  return o;
}

std::string scales_path(const std::string& matrix) {
  constexpr std::string_view kWeight = "/weight";
  if (!matrix.ends_with(kWeight)) return matrix + "_scales";
  return matrix.substr(0, matrix.size() - kWeight.size()) + "/scales";
}

std::vector<Parameter> parameters(const GrokShape& s, const LayerRange& layers, Held held) {
  const Axis vocab{"vocab", s.vocab}, embed{"embed", s.embed}, kv{"kv_heads", s.kv_heads},
      head{"head_dim", s.head_dim}, group{"group", s.query_heads / s.kv_heads},
      qkv{"qkv", s.query_heads / s.kv_heads + 2}, experts{"experts", s.experts}, mlp{"mlp", s.mlp};
  std::vector<Parameter> out;
  // `row_axes` of the axes count as rows; a norm has none: it is one row.
  const auto add = [&](const std::string& path, bool in_layers, std::vector<Axis> axes, size_t row_axes,
                       const char* dtype, std::vector<Part> parts, int64_t blocks = 1,
                       Content content = Content::kElements) {
    Parameter p;
    p.parts = std::move(parts);
    p.content = content;
    p.blocks = blocks;
    p.in_layers = in_layers;
    p.rows = p.columns = 1;
    for (size_t i = 0; i < axes.size(); ++i) (i < row_axes ? p.rows : p.columns) *= axes[i].size;
    p.spec.path = path;
    p.spec.dtype = dtype;
    p.spec.cell = cell_of(axes, row_axes, checkpoint::dtype_size(p.spec.dtype));
    if (in_layers) {
      axes.insert(axes.begin(), {"layers", layers.count()});
      p.spec.cell.insert(p.spec.cell.begin(), 1);
    }
    for (const Axis& axis : axes) {
      p.spec.axes.emplace_back(axis.name);
      p.spec.shape.push_back(axis.size);
    }
    out.push_back(std::move(p));
  };
  const auto norm = [&](const char* path, Part part) { add(path, true, {embed}, 0, "f32", {part}); };
  // A matrix of layers over whose axes [first, end) products sum: these and those before them count as rows.
  const auto matrix = [&](const std::string& path, const char* name, const std::vector<Axis>& axes,
                          size_t first, size_t end, int64_t groups, const std::vector<Part>& parts,
                          int64_t blocks = 1) {
    if (held != Held::kInt8)
      return add(path + name, true, axes, end, held == Held::kBf16 ? "bf16" : "f32", parts, blocks);
    add(path + name, true, axes, end, "i8", parts, blocks);
    std::vector<Axis> of_scales(axes.begin(), axes.begin() + static_cast<int64_t>(first));
    of_scales.push_back({nn::kScaleGroupsAxis, groups});
    of_scales.insert(of_scales.end(), axes.begin() + static_cast<int64_t>(end), axes.end());
    add(scales_path(path + name), true, of_scales, first + 1, "bf16", parts, blocks, Content::kScales);
  };
  add("model/embedding/weight", false, {vocab, embed}, 1, held == Held::kBf16 ? "bf16" : "f32",
      {Part::kEmbedding});
  norm("model/layers/attention_norm/weight", Part::kPreAttentionNorm);
  matrix("model/layers/attention/qkv", "/weight", {embed, kv, qkv, head}, 0, 1, 1,
         {Part::kQuery, Part::kKey, Part::kValue}, s.kv_heads);
  matrix("model/layers/attention/o", "/weight", {kv, group, head, embed}, 0, 3, s.row_groups,
         {Part::kAttentionOut});
  norm("model/layers/attention_post_norm/weight", Part::kPostAttentionNorm);
  norm("model/layers/mlp_norm/weight", Part::kPreMoeNorm);
  add("model/layers/moe/router/weight", true, {embed, experts}, 1, "f32", {Part::kRouter});
  matrix("model/layers/moe/gate_up", "", {experts, embed, {"gate_up", 2}, mlp}, 1, 2, 1,
         {Part::kExpertGate, Part::kExpertUp});
  matrix("model/layers/moe/down", "", {experts, mlp, embed}, 1, 2, s.row_groups, {Part::kExpertDown});
  norm("model/layers/mlp_post_norm/weight", Part::kPostMoeNorm);
  add("model/norm/weight", false, {embed}, 0, "f32", {Part::kFinalNorm});
  return out;
}

}  // namespace ostro::grok
