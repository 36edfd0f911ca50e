#include "ostro/grok/layout/shape.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::grok {
namespace {

using io::JsonFields;

constexpr int64_t kMaxExtent = int64_t{1} << 30, kMaxConfigBytes = 1 << 20, kMaxLayers = 8000;

Status read_size(const JsonFields& fields, const char* key, int64_t high, int64_t& out) {
  ASSIGN_OR_RETURN(out, fields.integer(key, 1, high));
  return {};
}

Status read_number(const JsonFields& fields, const char* key, double& out) {
  if (!fields.has(key)) return {};
  ASSIGN_OR_RETURN(const JsonFields::Json* value, fields.get(key));
  if (!value->is_number() || !std::isfinite(value->get<double>())) return fields.bad(key, "is not a number");
  out = value->get<double>();
  return {};
}

// A factor of the model, or a bound of its values: it and its inverse are numbers of f32 that are not zero.
Status read_factor(const JsonFields& fields, const char* key, double& out) {
  RETURN_IF_ERROR(read_number(fields, key, out));
  constexpr double kLow = 1e-30, kHigh = 1e30;
  if (out >= kLow && out <= kHigh) return {};
  return fields.bad(key, fmt::format("is {}; it must be from {} to {}", out, kLow, kHigh));
}

// The fields that are read below, and those that say nothing of what the model computes.
constexpr std::string_view kRead[] = {"vocab_size",
                                      "hidden_size",
                                      "intermediate_size",
                                      "num_hidden_layers",
                                      "num_attention_heads",
                                      "num_key_value_heads",
                                      "head_dim",
                                      "num_local_experts",
                                      "num_experts",
                                      "num_experts_per_tok",
                                      "max_position_embeddings",
                                      "embedding_multiplier_scale",
                                      "output_multiplier_scale",
                                      "attn_output_multiplier",
                                      "max_attn_value",
                                      "rms_norm_eps",
                                      "matrix_dtype",
                                      "row_groups",
                                      "hidden_act",
                                      "rope_theta",
                                      "tie_word_embeddings"},
                           kOfOtherThings[] = {"architectures",
                                               "auto_map",
                                               "model_type",
                                               "_name_or_path",
                                               "transformers_version",
                                               "torch_dtype",
                                               "dtype",
                                               "pad_token_id",
                                               "bos_token_id",
                                               "eos_token_id",
                                               "use_cache",
                                               "initializer_range",
                                               "attention_dropout",
                                               "hidden_dropout",
                                               "resid_pdrop",
                                               "embd_pdrop",
                                               "attn_pdrop",
                                               "output_router_logits",
                                               "router_aux_loss_coef"};

Status check_known(const JsonFields::Json& json, const std::string& path) {
  const auto has = [](const auto& names, std::string_view key) {
    return std::find(std::begin(names), std::end(names), key) != std::end(names);
  };
  if (!json.is_object()) return {};  // said where the first field is read
  for (const auto& [key, value] : json.items()) {
    if (has(kRead, key) || has(kOfOtherThings, key) || value.is_null()) continue;
    if (key == "quantization_config")
      return unsupported(fmt::format(
          "{}: \"quantization_config\": matrices are read in int8 with the release's scales, bf16 or f32",
          path));
    return unsupported(fmt::format(
        "{}: \"{}\" is {}: not a known field of a Grok; remove it if the model does not depend on it", path,
        key, value.dump()));
  }
  return {};
}

// Fields of other programs' configurations whose defaults are not Grok-1's: any other value is another model.
Status check_fixed(const JsonFields& fields) {
  if (fields.has("tie_word_embeddings")) {
    ASSIGN_OR_RETURN(const bool tied, fields.boolean("tie_word_embeddings"));
    if (!tied)
      return unsupported(fmt::format("{}: \"tie_word_embeddings\" is false; Grok-1's head is its embedding",
                                     fields.where()));
  }
  if (fields.has("hidden_act")) {
    ASSIGN_OR_RETURN(const std::string act, fields.string("hidden_act"));
    if (act != "gelu" && act != "gelu_pytorch_tanh" && act != "gelu_new")
      return unsupported(fmt::format("{}: \"hidden_act\" is \"{}\"; Grok-1 has gelu", fields.where(), act));
  }
  double theta = 10000;
  RETURN_IF_ERROR(read_number(fields, "rope_theta", theta));
  if (theta != 10000)
    return unsupported(fmt::format("{}: \"rope_theta\" is {}; Grok-1 has 10000", fields.where(), theta));
  return {};
}

Status read_dtype(const JsonFields& fields, Dtype& out) {
  if (!fields.has("matrix_dtype")) return {};
  ASSIGN_OR_RETURN(const std::string name, fields.string("matrix_dtype"));
  for (const Dtype dtype : {Dtype::kInt8, Dtype::kBf16, Dtype::kF32}) {
    if (name == dtype_name(dtype)) {
      out = dtype;
      return {};
    }
  }
  return fields.bad("matrix_dtype", fmt::format("is \"{}\", not int8, bf16 or f32", name));
}

Status check_shape(const GrokShape& shape, const JsonFields& fields) {
  if (shape.query_heads % shape.kv_heads != 0)
    return fields.bad("num_attention_heads", fmt::format("is {}, no multiple of \"num_key_value_heads\", {}",
                                                         shape.query_heads, shape.kv_heads));
  if (shape.experts < 2)
    return fields.bad("num_experts", fmt::format("is {}; at least 2 are supported", shape.experts));
  if (shape.experts_per_token > shape.experts)
    return fields.bad("num_experts_per_tok", fmt::format("is {}, more than \"num_experts\", {}",
                                                         shape.experts_per_token, shape.experts));
  if (shape.head_dim % 2 != 0)
    return fields.bad("head_dim", fmt::format("is {}, an odd number", shape.head_dim));
  if (shape.query_dim() % shape.row_groups != 0 || shape.mlp % shape.row_groups != 0)
    return fields.bad(
        "row_groups",
        fmt::format("is {}, which does not divide {} rows of the attention's output and {} of experts",
                    shape.row_groups, shape.query_dim(), shape.mlp));
  const double elements = static_cast<double>(shape.embed) *
                          std::max(static_cast<double>(shape.vocab),
                                   static_cast<double>(shape.mlp) * static_cast<double>(shape.experts));
  if (elements > 1e14)
    return fields.bad("hidden_size", fmt::format("is {}: a tensor of {} elements", shape.embed, elements));
  return {};
}

}  // namespace

std::string shape_title(const GrokShape& shape) {
  return shape == GrokShape() ? "Grok-1" : fmt::format("a Grok of {} layers", shape.layers);
}

int64_t mlp_width(int64_t embed, double widening_factor) {
  const int64_t width = static_cast<int64_t>(widening_factor * static_cast<double>(embed)) * 2 / 3;
  return width + (8 - width % 8) % 8;
}

std::string shape_to_json(const GrokShape& shape) {
  const nlohmann::ordered_json json = {{"architectures", {"Grok1ModelForCausalLM"}},
                                       {"model_type", "grok-1"},
                                       {"vocab_size", shape.vocab},
                                       {"hidden_size", shape.embed},
                                       {"intermediate_size", shape.mlp},
                                       {"num_hidden_layers", shape.layers},
                                       {"num_attention_heads", shape.query_heads},
                                       {"num_key_value_heads", shape.kv_heads},
                                       {"head_dim", shape.head_dim},
                                       {"max_position_embeddings", shape.positions},
                                       {"num_experts", shape.experts},
                                       {"num_experts_per_tok", shape.experts_per_token},
                                       {"embedding_multiplier_scale", shape.embedding_multiplier},
                                       {"output_multiplier_scale", shape.output_multiplier},
                                       {"attn_output_multiplier", shape.attention_multiplier},
                                       {"max_attn_value", shape.attention_cap},
                                       {"rms_norm_eps", shape.norm_eps},
                                       {"tie_word_embeddings", true},
                                       {"matrix_dtype", dtype_name(shape.matrices)},
                                       {"row_groups", shape.row_groups}};
  return json.dump(2) + "\n";
}

Result<GrokShape> shape_from_json(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(const JsonFields::Json json, io::parse_json(text, path));
  const JsonFields fields(json, path);
  RETURN_IF_ERROR(check_known(json, path));
  GrokShape shape;
  RETURN_IF_ERROR(read_size(fields, "vocab_size", kMaxExtent, shape.vocab));
  RETURN_IF_ERROR(read_size(fields, "hidden_size", kMaxExtent, shape.embed));
  RETURN_IF_ERROR(read_size(fields, "intermediate_size", kMaxExtent, shape.mlp));
  RETURN_IF_ERROR(read_size(fields, "num_hidden_layers", kMaxLayers, shape.layers));
  RETURN_IF_ERROR(read_size(fields, "num_attention_heads", 1 << 15, shape.query_heads));
  RETURN_IF_ERROR(read_size(fields, "num_key_value_heads", 1 << 15, shape.kv_heads));
  // Without it the width of a head follows from the others, as it does in other programs.
  shape.head_dim = std::max<int64_t>(1, shape.embed / shape.query_heads);
  if (fields.has("head_dim")) RETURN_IF_ERROR(read_size(fields, "head_dim", 1 << 15, shape.head_dim));
  // AMD's quantised variants say num_local_experts.
  const char* experts = fields.has("num_local_experts") ? "num_local_experts" : "num_experts";
  RETURN_IF_ERROR(read_size(fields, experts, 1 << 15, shape.experts));
  RETURN_IF_ERROR(read_size(fields, "num_experts_per_tok", 1 << 15, shape.experts_per_token));
  if (fields.has("max_position_embeddings"))
    RETURN_IF_ERROR(read_size(fields, "max_position_embeddings", int64_t{1} << 40, shape.positions));
  RETURN_IF_ERROR(read_factor(fields, "embedding_multiplier_scale", shape.embedding_multiplier));
  RETURN_IF_ERROR(read_factor(fields, "output_multiplier_scale", shape.output_multiplier));
  RETURN_IF_ERROR(read_factor(fields, "attn_output_multiplier", shape.attention_multiplier));
  RETURN_IF_ERROR(read_factor(fields, "max_attn_value", shape.attention_cap));
  RETURN_IF_ERROR(read_factor(fields, "rms_norm_eps", shape.norm_eps));
  RETURN_IF_ERROR(read_dtype(fields, shape.matrices));
  if (fields.has("row_groups")) RETURN_IF_ERROR(read_size(fields, "row_groups", 1 << 15, shape.row_groups));
  RETURN_IF_ERROR(check_fixed(fields));
  RETURN_IF_ERROR(check_shape(shape, fields));
  return shape;
}

Result<GrokShape> read_shape(io::FileSystem& fs, const std::string& directory) {
  const std::string path = io::join_path(directory, "config.json");
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return GrokShape();
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMaxConfigBytes));
  return shape_from_json(text, path);
}

}  // namespace ostro::grok
