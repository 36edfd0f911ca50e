// make_leaves: the tensors of a Grok-1 in the order of the release's files.
#pragma once

#include <string>
#include <vector>

#include "ostro/grok/layout/shape.h"

namespace ostro::grok {

// The parts of the model. Those of a layer from kExpertGate on.
enum class Part {
  kEmbedding,  // also the output matrix, transposed
  kFinalNorm,
  kExpertGate,  // "linear": what GELU is taken of
  kExpertDown,  // "linear_1"
  kExpertUp,    // "linear_v"
  kKey,
  kAttentionOut,  // "linear"
  kQuery,
  kValue,
  kPreAttentionNorm,
  kPostAttentionNorm,
  kPreMoeNorm,
  kPostMoeNorm,
  kRouter,
};
inline constexpr int kParts = 14;
inline constexpr int kLayerParts = 12;

// One tensor: a file.
struct Leaf {
  std::string name;  // the Haiku module's path and the parameter: "transformer/decoder_layer_10/moe/linear/w"
  Part part = Part::kEmbedding;
  int64_t layer = -1;   // -1 outside of layers
  std::string file;     // "tensor00014_000"
  StoredTensor tensor;  // dtypes and shapes, and where the elements are in a file as the release's
  int64_t bytes = 0;    // of that file
};

// In the order of the files: that of the names as texts, so layer 10 comes before layer 2. JAX flattens dicts
// so, and the release has no list of names.
std::vector<Leaf> make_leaves(const GrokShape& shape);

// "layer 10, moe/linear" or "language_model/in_out_embed", for errors.
std::string leaf_title(const Leaf& leaf);

// The file that holds tensor number `index`.
std::string leaf_file(size_t index);

}  // namespace ostro::grok
