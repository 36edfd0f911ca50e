// TileShape: the kernels of attention by tiles (tiled_forward.cu, tiled_backward.cu): which there are, the
// shape of their launches, and what they take.
//
// Pure functions; any thread may call them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "ostro/cuda/steps/step_call.h"

namespace ostro::cuda {

// The numbers of a kernel's template: `rows` of queries (of keys, for dk and dv) by `threads`; `across` keys
// (queries) at a time; head_dim at most `wide`; what comes from memory at a time.
struct TileShape {
  int64_t rows, threads, across, wide, piece_dims, piece_rows;

  int64_t piece() const { return std::max(across * piece_dims, wide * piece_rows); }
  int64_t forward_bytes() const { return 4 * (wide * rows + 128 * rows + piece() + 2 * rows + threads); }
  int64_t dq_bytes() const { return 4 * (2 * wide * rows + across * rows + piece()) + 28 * rows; }
  int64_t dkv_bytes() const { return 4 * (2 * wide * rows + across * rows + piece()) + 28 * across; }
};

// For one head_dim: forward, dq, and dk with dv.
struct TileShapes {
  int64_t wide;
  TileShape forward, dq, dkv;
};

// The shapes for this head_dim; null where there are none.
const TileShapes* tile_shapes(int64_t head_dim);

// Whether the kernels can read or write this operand: rows of head_dim numbers side by side, whose quads are
// aligned.
bool takes_tiles(const DeviceArray& a, const std::string& head_dim);

}  // namespace ostro::cuda
