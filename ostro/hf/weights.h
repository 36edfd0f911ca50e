// How the weights of a Llama here and of Hugging Face's Llama correspond: one table for export, for gradients
// that are compared with other frameworks, and for reading weights.
//
// Here q, k and v are one weight, so are gate and up, and the layers are stacked; there each is a matrix of
// its own, [out, in].
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ostro/models/llama_options.h"
#include "ostro/runtime/buffer.h"

namespace ostro::hf {

// `count` indices of an axis from `start` on.
struct Cut {
  std::string axis;
  int64_t start = 0, count = 1;
};

// One weight of the other side as a part of one of ours.
struct WeightPart {
  std::string name;                  // "model.layers.0.self_attn.q_proj.weight"
  std::string path;                  // "model/layers/attention/qkv/weight"
  std::vector<Cut> cuts;             // of axes that are not taken whole
  std::vector<std::string> rows;     // axes that together number the rows, outermost first
  std::vector<std::string> columns;  // likewise; empty for a vector
};

// All weights in the order of the layers. A tied head is no weight of its own.
std::vector<WeightPart> llama_weights(const models::LlamaOptions& options);

// Sizes of the part of a weight of this shape: [rows, columns], or [rows].
std::vector<int64_t> part_shape(const WeightPart& part, const ir::Shape& whole);

// Copies the part out of the whole weight, row-major in the other side's layout. Any dtype.
std::vector<std::byte> take_part(const WeightPart& part, const runtime::Buffer& whole);

}  // namespace ostro::hf
