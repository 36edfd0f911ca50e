#include "ostro/grok/layout/leaves.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "ostro/grok/pickle/writer.h"

namespace ostro::grok {
namespace {

struct PartName {
  Part part;
  const char* module;
  const char* parameter;
};

constexpr PartName kLayerNames[kLayerParts] = {{Part::kExpertGate, "moe/linear", "w"},
                                               {Part::kExpertDown, "moe/linear_1", "w"},
                                               {Part::kExpertUp, "moe/linear_v", "w"},
                                               {Part::kKey, "multi_head_attention/key", "w"},
                                               {Part::kAttentionOut, "multi_head_attention/linear", "w"},
                                               {Part::kQuery, "multi_head_attention/query", "w"},
                                               {Part::kValue, "multi_head_attention/value", "w"},
                                               {Part::kPreAttentionNorm, "rms_norm", "scale"},
                                               {Part::kPostAttentionNorm, "rms_norm_1", "scale"},
                                               {Part::kPreMoeNorm, "rms_norm_2", "scale"},
                                               {Part::kPostMoeNorm, "rms_norm_3", "scale"},
                                               {Part::kRouter, "router", "w"}};

StoredTensor array(io::Extents shape) {
  return {{.dtype = Dtype::kF32, .shape = std::move(shape)}, std::nullopt};
}

// A matrix, or one for each expert, of `rows` inputs. It has `groups` rows of scales: its rows were split
// over so many devices, and each quantised its own.
StoredTensor matrix(const GrokShape& shape, io::Extents extents, int64_t groups) {
  StoredTensor tensor{{.dtype = shape.matrices, .shape = extents}, std::nullopt};
  if (shape.matrices == Dtype::kInt8) {
    extents[extents.size() - 2] = groups;
    tensor.scales = StoredArray{.dtype = Dtype::kBf16, .shape = std::move(extents)};
  }
  return tensor;
}

StoredTensor tensor_of(Part part, const GrokShape& s) {
  switch (part) {
    case Part::kEmbedding: return array({s.vocab, s.embed});
    case Part::kExpertGate:
    case Part::kExpertUp: return matrix(s, {s.experts, s.embed, s.mlp}, 1);
    case Part::kExpertDown: return matrix(s, {s.experts, s.mlp, s.embed}, s.row_groups);
    case Part::kKey:
    case Part::kValue: return matrix(s, {s.embed, s.kv_dim()}, 1);
    case Part::kQuery: return matrix(s, {s.embed, s.query_dim()}, 1);
    case Part::kAttentionOut: return matrix(s, {s.query_dim(), s.embed}, s.row_groups);
    case Part::kRouter: return array({s.embed, s.experts});
    case Part::kFinalNorm:
    case Part::kPreAttentionNorm:
    case Part::kPostAttentionNorm:
    case Part::kPreMoeNorm:
    case Part::kPostMoeNorm: return array({s.embed});
  }
  return {};
}

}  // namespace

std::string leaf_file(size_t index) { return fmt::format("tensor{:05}_000", index); }

std::vector<Leaf> make_leaves(const GrokShape& shape) {
  std::vector<Leaf> leaves;
  const auto add = [&](std::string name, Part part, int64_t layer) {
    leaves.push_back({.name = std::move(name), .part = part, .layer = layer, .file = {}, .tensor = {}});
  };
  add("language_model/in_out_embed/embeddings", Part::kEmbedding, -1);
  add("language_model/rms_norm/scale", Part::kFinalNorm, -1);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const auto& [part, module, parameter] : kLayerNames)
      add(fmt::format("transformer/decoder_layer_{}/{}/{}", layer, module, parameter), part, layer);
  }
  // Sorted by module, as Haiku's dicts are: no module has two parameters.
  std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
    return a.name.substr(0, a.name.rfind('/')) < b.name.substr(0, b.name.rfind('/'));
  });
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].file = leaf_file(i);
    leaves[i].tensor = tensor_of(leaves[i].part, shape);
    leaves[i].bytes = write_pickle(leaves[i].tensor).bytes;
  }
  return leaves;
}

std::string leaf_title(const Leaf& leaf) {
  if (leaf.layer < 0) return leaf.name;
  const std::string prefix = fmt::format("transformer/decoder_layer_{}/", leaf.layer);
  return fmt::format("layer {}, {}", leaf.layer, leaf.name.substr(prefix.size()));
}

}  // namespace ostro::grok
