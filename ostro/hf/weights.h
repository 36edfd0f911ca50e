// WeightPart, family_weights: the correspondence of our weights and the tensors of Hugging Face directories,
// element by element. The tables of families/ name the weight of each tensor; one list, made from them,
// serves export, import, and the comparison of gradients with other frameworks.
//
// Ours: q, k and v are one weight, gate and up are one weight, and layers are stacked into one array, as are
// the experts of a layer.
// Hugging Face's: per layer and expert, separate or fused in other ways, [out, in] or [in, out].
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/models/decoder/decoder_options.h"
#include "ostro/runtime/buffer.h"

namespace ostro::hf {

// A range of an axis: `count` indices, beginning at `start`.
struct Cut {
  std::string axis;
  int64_t start = 0, count = 1;
};

// A tensor of Hugging Face's, or some of its rows, as a part of one of our weights. Parts of one name follow
// each other; their rows, in this order, are the tensor.
struct WeightPart {
  std::string name;                  // "model.layers.0.self_attn.q_proj.weight"
  std::string path;                  // "model/layers/attention/qkv/weight"
  std::vector<Cut> cuts;             // ranges of the axes that are not taken whole
  std::vector<std::string> rows;     // axes that together form the rows, outermost first
  std::vector<std::string> columns;  // axes that form the columns; empty for a vector
};

// All weights of the model, in the order of the layers. A tied head is not listed. Error: kUnsupported if the
// family has no form in Hugging Face directories, or none for its router's bias.
Result<std::vector<WeightPart>> family_weights(const models::DecoderOptions& options);

// The shape of the part: [rows, columns], or [rows] for a vector. `whole` is the shape of our weight.
std::vector<int64_t> part_shape(const WeightPart& part, const ir::Shape& whole);

// The offsets of a part's elements in the whole weight, in elements: row r, column c is at rows[r] +
// columns[c].
struct PartPlaces {
  std::vector<int64_t> rows, columns;  // a vector has one column
};
PartPlaces part_places(const WeightPart& part, const ir::Shape& whole);

// Copies the part out of the whole weight, row-major in Hugging Face's layout. Any dtype.
std::vector<std::byte> take_part(const WeightPart& part, const runtime::Buffer& whole);

}  // namespace ostro::hf
