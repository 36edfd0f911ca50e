#include "ostro/grok/convert/model.h"

#include <algorithm>

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

}  // namespace

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

std::vector<Parameter> parameters(const GrokShape& s, const LayerRange& layers, Held held) {
  const Axis vocab{"vocab", s.vocab}, embed{"embed", s.embed}, kv{"kv_heads", s.kv_heads},
      head{"head_dim", s.head_dim}, group{"group", s.query_heads / s.kv_heads},
      qkv{"qkv", s.query_heads / s.kv_heads + 2}, experts{"experts", s.experts}, mlp{"mlp", s.mlp};
  std::vector<Parameter> out;
  // `row_axes` of the axes count as rows; a norm has none: it is one row.
  const auto add = [&](const std::string& path, bool in_layers, std::vector<Axis> axes, size_t row_axes,
                       bool stays_f32, std::vector<Part> parts, int64_t blocks = 1) {
    Parameter p;
    p.parts = std::move(parts);
    p.blocks = blocks;
    p.in_layers = in_layers;
    p.rows = p.columns = 1;
    for (size_t i = 0; i < axes.size(); ++i) (i < row_axes ? p.rows : p.columns) *= axes[i].size;
    p.spec.path = path;
    p.spec.dtype = held == Held::kBf16 && !stays_f32 ? "bf16" : "f32";
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
  const auto norm = [&](const char* path, Part part) { add(path, true, {embed}, 0, true, {part}); };
  add("model/embedding/weight", false, {vocab, embed}, 1, false, {Part::kEmbedding});
  norm("model/layers/attention_norm/weight", Part::kPreAttentionNorm);
  add("model/layers/attention/qkv/weight", true, {embed, kv, qkv, head}, 1, false,
      {Part::kQuery, Part::kKey, Part::kValue}, s.kv_heads);
  add("model/layers/attention/o/weight", true, {kv, group, head, embed}, 3, false, {Part::kAttentionOut});
  norm("model/layers/attention_post_norm/weight", Part::kPostAttentionNorm);
  norm("model/layers/mlp_norm/weight", Part::kPreMoeNorm);
  add("model/layers/moe/router/weight", true, {embed, experts}, 1, true, {Part::kRouter});
  add("model/layers/moe/gate_up", true, {experts, embed, {"gate_up", 2}, mlp}, 2, false,
      {Part::kExpertGate, Part::kExpertUp});
  add("model/layers/moe/down", true, {experts, mlp, embed}, 2, false, {Part::kExpertDown});
  norm("model/layers/mlp_post_norm/weight", Part::kPostMoeNorm);
  add("model/norm/weight", false, {embed}, 0, true, {Part::kFinalNorm});
  return out;
}

}  // namespace ostro::grok
