// How the weights of our Llama correspond to those of Hugging Face's Llama. One table serves export, the
// comparison of gradients with other frameworks, and reading weights.
//
// Ours: q, k and v are one weight, gate and up are one weight, and all layers are stacked into one array.
// Hugging Face's: each is a separate matrix, [out, in], per layer.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ostro/models/decoder/decoder_options.h"
#include "ostro/runtime/buffer.h"

namespace ostro::hf {

// A range of an axis: `count` indices, beginning at `start`.
struct Cut {
  std::string axis;
  int64_t start = 0, count = 1;
};

// One weight of Hugging Face's model, as a part of one of our weights.
struct WeightPart {
  std::string name;                  // "model.layers.0.self_attn.q_proj.weight"
  std::string path;                  // "model/layers/attention/qkv/weight"
  std::vector<Cut> cuts;             // ranges of the axes that are not taken whole
  std::vector<std::string> rows;     // axes that together form the rows, outermost first
  std::vector<std::string> columns;  // axes that form the columns; empty for a vector
};

// All weights of the model, in the order of the layers. A tied head is not listed.
std::vector<WeightPart> llama_weights(const models::DecoderOptions& options);

// The shape of the part: [rows, columns], or [rows] for a vector. `whole` is the shape of our weight.
std::vector<int64_t> part_shape(const WeightPart& part, const ir::Shape& whole);

// Copies the part out of the whole weight, row-major in Hugging Face's layout. Any dtype.
std::vector<std::byte> take_part(const WeightPart& part, const runtime::Buffer& whole);

}  // namespace ostro::hf
