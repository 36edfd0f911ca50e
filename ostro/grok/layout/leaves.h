// make_leaves: the tensors of a Grok-1 in the order of the release's files. Values and pure functions; there
// are no errors.
#pragma once

#include <string>
#include <vector>

#include "ostro/grok/layout/shape.h"

namespace ostro::grok {

// The parts of the model. The values from kExpertGate on are parts of a layer. Beside a value stands the name
// of its module in the release, where that is another one.
enum class Part {
  kEmbedding,  // also the output matrix, transposed
  kFinalNorm,
  kExpertGate,  // "linear"; its result goes through GELU
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

// The tensors, sorted by their names as texts, as the files are: layer 10 comes before layer 2. The release
// has no list of names; this order is that in which JAX flattens a dict.
std::vector<Leaf> make_leaves(const GrokShape& shape);

// "layer 10, moe/linear" or "language_model/in_out_embed", for errors.
std::string leaf_title(const Leaf& leaf);

// The file that holds tensor number `index`.
std::string leaf_file(size_t index);

}  // namespace ostro::grok
