#include "ostro/hf/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"

namespace ostro::hf {
namespace {

// One axis of the part: how many elements, and their distance in the whole weight.
struct Walk {
  int64_t count = 1;
  int64_t stride = 0;  // in elements
};

const Cut* find_cut(const WeightPart& part, const std::string& axis) {
  for (const Cut& cut : part.cuts)
    if (cut.axis == axis) return &cut;
  return nullptr;
}

int64_t count_of(const WeightPart& part, const ir::Shape& whole, const std::string& axis) {
  const Cut* cut = find_cut(part, axis);
  return cut != nullptr ? cut->count : whole.size_of(axis);
}

int64_t product_of(const WeightPart& part, const ir::Shape& whole, const std::vector<std::string>& axes) {
  int64_t product = 1;
  for (const std::string& axis : axes) product *= count_of(part, whole, axis);
  return product;
}

}  // namespace

std::vector<WeightPart> llama_weights(const models::DecoderOptions& options) {
  const std::vector<std::string> heads = {"kv_heads", "qkv", "head_dim"};
  const int64_t group = options.num_heads / options.num_kv_heads;
  std::vector<WeightPart> out;
  out.push_back({"model.embed_tokens.weight", "model/embedding/weight", {}, {"vocab"}, {"embed"}});
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const auto add = [&](const char* name, const char* path, std::vector<Cut> cuts,
                         std::vector<std::string> rows, std::vector<std::string> columns) {
      cuts.push_back({"layers", layer, 1});
      out.push_back({fmt::format("model.layers.{}.{}.weight", layer, name),
                     fmt::format("model/layers/{}/weight", path), std::move(cuts), std::move(rows),
                     std::move(columns)});
    };
    add("input_layernorm", "attention_norm", {}, {"embed"}, {});
    add("self_attn.q_proj", "attention/qkv", {{"qkv", 0, group}}, heads, {"embed"});
    add("self_attn.k_proj", "attention/qkv", {{"qkv", group, 1}}, heads, {"embed"});
    add("self_attn.v_proj", "attention/qkv", {{"qkv", group + 1, 1}}, heads, {"embed"});
    add("self_attn.o_proj", "attention/o", {}, {"embed"}, {"kv_heads", "group", "head_dim"});
    add("post_attention_layernorm", "mlp_norm", {}, {"embed"}, {});
    add("mlp.gate_proj", "mlp/gate_up", {{"gate_up", 0, 1}}, {"gate_up", "mlp"}, {"embed"});
    add("mlp.up_proj", "mlp/gate_up", {{"gate_up", 1, 1}}, {"gate_up", "mlp"}, {"embed"});
    add("mlp.down_proj", "mlp/down", {}, {"embed"}, {"mlp"});
  }
  out.push_back({"model.norm.weight", "model/norm/weight", {}, {"embed"}, {}});
  if (!options.tie_word_embeddings)
    out.push_back({"lm_head.weight", "model/head/weight", {}, {"vocab"}, {"embed"}});
  return out;
}

std::vector<int64_t> part_shape(const WeightPart& part, const ir::Shape& whole) {
  std::vector<int64_t> shape = {product_of(part, whole, part.rows)};
  if (!part.columns.empty()) shape.push_back(product_of(part, whole, part.columns));
  return shape;
}

std::vector<std::byte> take_part(const WeightPart& part, const runtime::Buffer& whole) {
  const ir::Shape& shape = whole.shape();
  const std::vector<int64_t> strides = shape.strides();
  std::vector<Walk> walks;
  for (const auto* axes : {&part.rows, &part.columns})
    for (const std::string& axis : *axes)
      walks.push_back({count_of(part, shape, axis), strides[static_cast<size_t>(shape.find(axis))]});
  int64_t origin = 0, count = 1;
  for (const Cut& cut : part.cuts) {
    OSTRO_CHECK(cut.start + cut.count <= shape.size_of(cut.axis), "{}: {} has {} of {}", part.name, part.path,
                shape.size_of(cut.axis), cut.axis);
    origin += cut.start * strides[static_cast<size_t>(shape.find(cut.axis))];
  }
  for (const Walk& walk : walks) count *= walk.count;

  const auto item = static_cast<size_t>(ir::dtype_size(shape.dtype));
  std::vector<std::byte> out(static_cast<size_t>(count) * item);
  std::vector<int64_t> index(walks.size(), 0);
  const std::byte* from = whole.bytes().data();
  std::byte* to = out.data();
  for (int64_t at = origin, n = 0; n < count; ++n, to += item) {
    std::memcpy(to, from + static_cast<size_t>(at) * item, item);
    for (size_t d = walks.size(); d-- > 0;) {
      at += walks[d].stride;
      if (++index[d] < walks[d].count) break;
      at -= walks[d].stride * walks[d].count;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace ostro::hf
