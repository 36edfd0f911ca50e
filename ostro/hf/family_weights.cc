// The list of a model's weights, from its family's table.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/hf/families/family.h"
#include "ostro/hf/weights.h"

namespace ostro::hf {
namespace {

using models::DecoderOptions, models::QkNorm;
using AxisNames = std::vector<std::string>;

// The meaning of a role in a model: the parts of one weight that are the tensor's rows, and whether a bias
// stands beside it.
struct RoleParts {
  std::string path;  // below the layer, or below "model"
  std::vector<std::vector<Cut>> cuts = {{}};
  AxisNames rows, columns;  // no columns: a vector
  bool bias = false;
  bool whole_path = false;  // the path is the weight's, without a last word
  bool whole_name = false;  // so is the name
};

bool has_router_bias(const DecoderOptions& o) { return o.router_bias || o.router_bias_update_rate > 0; }

RoleParts norm_parts(const DecoderOptions& o, const char* path, AxisNames axes) {
  return {path, {{}}, std::move(axes), {}, o.norm_bias};
}

RoleParts qkv_parts(const DecoderOptions& o, std::vector<std::vector<Cut>> cuts, AxisNames rows) {
  return {"attention/qkv", std::move(cuts), std::move(rows), {"embed"}, o.qkv_bias};
}

RoleParts mlp_parts(const DecoderOptions& o, const char* path, std::vector<Cut> cuts, AxisNames rows,
                    AxisNames columns) {
  return {path, {std::move(cuts)}, std::move(rows), std::move(columns), o.mlp_bias};
}

RoleParts expert_parts(const char* path, std::vector<Cut> cuts, AxisNames rows, AxisNames columns) {
  return {path, {std::move(cuts)}, std::move(rows), std::move(columns), false, /*whole_path=*/true};
}

RoleParts latent_parts(const char* path, AxisNames rows, AxisNames columns, bool bias = false) {
  return {path, {{}}, std::move(rows), std::move(columns), bias};
}

// Nothing if the layer lacks the role. q, k and v are ranges of the axis "qkv" of one weight: group() query
// heads for each key head, then its key, then its value. Gate and up are the two halves of "gate_up".
std::optional<RoleParts> parts_of(Role role, const DecoderOptions& o, const models::LayerSpec& layer) {
  const AxisNames heads = {"kv_heads", "qkv", "head_dim"};
  const bool before = o.norm_place != models::NormPlace::kPost,
             behind = o.norm_place != models::NormPlace::kPre, experts = o.num_experts > 0 && !layer.dense,
             shared = experts && o.shared_intermediate_dim > 0, latent = o.kv_lora_rank > 0,
             two = latent && o.q_lora_rank > 0;
  const std::string mlp = layer.dense ? "dense_mlp" : "mlp";
  const Cut q{"qkv", 0, o.group()}, k{"qkv", o.group(), 1}, v{"qkv", o.group() + 1, 1};
  const auto if_has = [](bool has, RoleParts parts) {
    return has ? std::optional(std::move(parts)) : std::nullopt;
  };
  switch (role) {
    case Role::kEmbedding: return RoleParts{"embedding", {{}}, {"vocab"}, {"embed"}};
    case Role::kPositions: return RoleParts{"position_embedding", {{}}, {"position"}, {"embed"}};
    case Role::kFinalNorm: return norm_parts(o, "norm", {"embed"});
    case Role::kHead:
      return if_has(!o.tie_word_embeddings, {"head", {{}}, {"vocab"}, {"embed"}, o.head_bias});
    case Role::kAttentionNorm: return if_has(before, norm_parts(o, "attention_norm", {"embed"}));
    case Role::kAttentionPostNorm: return if_has(behind, norm_parts(o, "attention_post_norm", {"embed"}));
    case Role::kMlpNorm: return if_has(before, norm_parts(o, "mlp_norm", {"embed"}));
    case Role::kMlpPostNorm: return if_has(behind, norm_parts(o, "mlp_post_norm", {"embed"}));
    case Role::kQNorm:
      return if_has(o.qk_norm != QkNorm::kNone,
                    norm_parts(o, "attention/q_norm",
                               o.qk_norm == QkNorm::kWhole ? AxisNames{"kv_heads", "group", "head_dim"}
                                                           : AxisNames{"head_dim"}));
    case Role::kKNorm:
      return if_has(o.qk_norm != QkNorm::kNone,
                    norm_parts(o, "attention/k_norm",
                               o.qk_norm == QkNorm::kWhole ? AxisNames{"kv_heads", "head_dim"}
                                                           : AxisNames{"head_dim"}));
    case Role::kQ:
      if (latent)
        return if_has(!two, latent_parts("attention/latent/q", {"kv_heads", "group", "head_dim"}, {"embed"}));
      return qkv_parts(o, {{q}}, heads);
    case Role::kK: return qkv_parts(o, {{k}}, heads);
    case Role::kV: return qkv_parts(o, {{v}}, heads);
    case Role::kQkv: return qkv_parts(o, {{q}, {k}, {v}}, heads);
    case Role::kQkvOfHeads: return qkv_parts(o, {{}}, heads);
    case Role::kQkvOfKinds: return qkv_parts(o, {{}}, {"qkv", "kv_heads", "head_dim"});
    case Role::kQA:
      return if_has(two, latent_parts("attention/latent/q_a", {"q_rank"}, {"embed"}, o.qkv_bias));
    case Role::kQANorm: return if_has(two, norm_parts(o, "attention/latent/q_norm", {"q_rank"}));
    case Role::kQB:
      return if_has(two, latent_parts("attention/latent/q", {"kv_heads", "group", "head_dim"}, {"q_rank"}));
    case Role::kKvA:
      return if_has(latent, latent_parts("attention/latent/kv_a", {"kv_latent"}, {"embed"}, o.qkv_bias));
    case Role::kKvANorm: return if_has(latent, norm_parts(o, "attention/latent/kv_norm", {"kv_rank"}));
    case Role::kKvB:
      return if_has(latent, latent_parts("attention/latent/kv_b", {"kv_heads", "kv_dim"}, {"kv_rank"}));
    case Role::kO:
      return RoleParts{"attention/o",
                       {{}},
                       {"embed"},
                       {"kv_heads", "group", latent ? "value_dim" : "head_dim"},
                       o.out_bias};
    case Role::kGate:
      return if_has(!experts, mlp_parts(o, "mlp/gate_up", {{"gate_up", 0, 1}}, {"gate_up", mlp}, {"embed"}));
    case Role::kUpOfGate:
      return if_has(!experts, mlp_parts(o, "mlp/gate_up", {{"gate_up", 1, 1}}, {"gate_up", mlp}, {"embed"}));
    case Role::kGateUp: return if_has(!experts, mlp_parts(o, "mlp/gate_up", {}, {"gate_up", mlp}, {"embed"}));
    case Role::kUp: return if_has(!experts, mlp_parts(o, "mlp/up", {}, {mlp}, {"embed"}));
    case Role::kDown: return if_has(!experts, mlp_parts(o, "mlp/down", {}, {"embed"}, {mlp}));
    case Role::kRouter: return if_has(experts, {"moe/router", {{}}, {"experts"}, {"embed"}});
    case Role::kRouterBias:
      return if_has(
          experts && has_router_bias(o),
          {"moe/router/bias", {{}}, {"experts"}, {}, false, /*whole_path=*/true, /*whole_name=*/true});
    case Role::kExpertGate:
      return if_has(experts, expert_parts("moe/gate_up", {{"gate_up", 0, 1}}, {"gate_up", "mlp"}, {"embed"}));
    case Role::kExpertUp:
      return if_has(experts, expert_parts("moe/gate_up", {{"gate_up", 1, 1}}, {"gate_up", "mlp"}, {"embed"}));
    case Role::kExpertDown: return if_has(experts, expert_parts("moe/down", {}, {"embed"}, {"mlp"}));
    case Role::kSharedGate:
      return if_has(shared,
                    {"moe/shared/gate_up", {{{"gate_up", 0, 1}}}, {"gate_up", "shared_mlp"}, {"embed"}});
    case Role::kSharedUp:
      return if_has(shared,
                    {"moe/shared/gate_up", {{{"gate_up", 1, 1}}}, {"gate_up", "shared_mlp"}, {"embed"}});
    case Role::kSharedDown: return if_has(shared, {"moe/shared/down", {{}}, {"embed"}, {"shared_mlp"}});
    case Role::kSharedWeight:
      return if_has(shared && o.shared_expert_gate, expert_parts("moe/shared_gate", {}, {}, {"embed"}));
  }
  return {};
}

// The tensors of one row. `name` and `path` are those of the weight without its last word; `where` is the
// place among the stacked layers.
void add_row(const NameRow& row, const RoleParts& parts, const std::string& name, const std::string& path,
             const std::vector<Cut>& where, std::vector<WeightPart>& out) {
  const auto add = [&](const char* word, AxisNames rows, AxisNames columns) {
    for (std::vector<Cut> cuts : parts.cuts) {
      cuts.insert(cuts.end(), where.begin(), where.end());
      out.push_back({parts.whole_name ? name : fmt::format("{}.{}", name, word),
                     parts.whole_path ? path : fmt::format("{}/{}", path, word), std::move(cuts), rows,
                     columns});
    }
  };
  if (row.columns)
    add("weight", parts.columns, parts.rows);
  else
    add("weight", parts.rows, parts.columns);
  if (parts.bias) add("bias", parts.rows, {});
}

// The tensors of one row; if its name has a '*', those of every expert.
void add_rows(const NameRow& row, const RoleParts& parts, const std::string& name, const std::string& path,
              const std::vector<Cut>& where, int64_t experts, std::vector<WeightPart>& out) {
  const size_t star = name.find('*');
  if (star == std::string::npos) return add_row(row, parts, name, path, where, out);
  for (int64_t e = 0; e < experts; ++e) {
    std::vector<Cut> place = where;
    place.push_back({"experts", e, 1});
    add_row(row, parts, std::string(name).replace(star, 1, fmt::format("{}", e)), path, place, out);
  }
}

}  // namespace

Result<std::vector<WeightPart>> family_weights(const DecoderOptions& o) {
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family(o.family->name));
  const FamilyNames& names = family->names;
  const bool names_bias = std::any_of(names.layer.begin(), names.layer.end(),
                                      [](const NameRow& row) { return row.role == Role::kRouterBias; });
  if (has_router_bias(o) && !names_bias)
    return unsupported(
        fmt::format("model.router_bias_update_rate is {}, model.router_bias {}; experts are chosen "
                    "with a bias, for which a {} of Hugging Face directories has no tensor",
                    o.router_bias_update_rate, o.router_bias, family->model_type));
  std::vector<WeightPart> out;
  const auto add_all = [&](const std::vector<NameRow>& rows, const std::string& prefix,
                           const std::string& path, const std::vector<Cut>& where,
                           const models::LayerSpec& layer = {}) {
    for (const NameRow& row : rows)
      if (const auto parts = parts_of(row.role, o, layer))
        add_rows(row, *parts, prefix + std::string(row.name), fmt::format("{}/{}", path, parts->path), where,
                 o.num_experts, out);
  };
  add_all(names.before, "", "model", {});
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const models::LayerPlace place = o.layer_place(i);
    add_all(names.layer, fmt::format("{}{}.", names.layers, i), place.path, {{"layers", place.index, 1}},
            o.layer(i));
  }
  add_all(names.behind, "", "model", {});
  return out;
}

}  // namespace ostro::hf
