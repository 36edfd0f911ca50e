// decoder_options, grok_shape, parameters: a Grok-1 as the decoder that Ostro trains: its options, and the
// place of each parameter's elements in the release's tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/grok/layout/leaves.h"
#include "ostro/models/decoder/decoder_options.h"

namespace ostro::grok {

// The layers of a release that a model has: [first, last).
struct LayerRange {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
};

// The dtypes of a checkpoint's elements: f32; matrices and the embedding in bf16; or the matrices of layers
// as the release has them, int8 with bf16 scales, and the embedding in f32. Norms and routers are always f32,
// as in the release.
enum class Held { kF32, kBf16, kInt8 };

// The options of model.type grok for this shape. Errors: kUnsupported for a head that attention does not
// take.
Result<models::DecoderOptions> decoder_options(const GrokShape& shape, const LayerRange& layers);

// The other way: the shape of a model of type grok with this vocabulary, its matrices in `matrices`. Errors:
// kUnsupported for a model that the release's layout cannot hold, with the option that is in the way.
Result<GrokShape> grok_shape(const models::DecoderOptions& options, int64_t vocab, Dtype matrices);

// The content of a parameter: the elements of its tensors, or the scales of int8 ones.
enum class Content { kElements, kScales };

// One parameter. In each layer (or once, for those outside of layers) it is rows, each the columns of some
// tensors of the release side by side: in `blocks` equal blocks, in each of them the block of the first
// tensor, then that of the second. So rows of q, k and v have a block for each key head.
struct Parameter {
  checkpoint::TensorSpec spec;  // its cells are whole rows of one layer
  std::vector<Part> parts;
  Content content = Content::kElements;
  int64_t blocks = 1;
  bool in_layers = false;
  int64_t rows = 0, columns = 0;  // of one layer
};

// The parameter that has the scales of an int8 matrix.
std::string scales_path(const std::string& matrix);

// All parameters, in the order of the model's. A cell has at most 64 MiB, or one row if that is longer.
std::vector<Parameter> parameters(const GrokShape& shape, const LayerRange& layers, Held held);

}  // namespace ostro::grok
