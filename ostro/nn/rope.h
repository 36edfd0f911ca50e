// Rotary position embedding (RoPE).
#pragma once

#include <vector>

#include "ostro/trace/ops.h"

namespace ostro::nn {

// Llama 3.1's scaling of RoPE, which stretches long wavelengths. Factor 1 changes nothing.
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max_position_embeddings = 8192;
};

// theta^(-2i / head_dim) for i < head_dim / 2, scaled, rounded once to f32. f64 functions of numerics::.
std::vector<float> rope_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling = {});

// cos and sin of position * frequency, with the axes of the positions and then "half" (head_dim / 2). Made
// once per program and shared by all layers. angle = f32(position) * frequency, one rounding.
struct Rope {
  Array cos, sin;
  // positions: i32, any axes.
  static Rope at(const Array& positions, const std::vector<float>& frequencies);
  // Rotates x [..., head_dim]: its two halves (a, b) become (a cos - b sin, b cos + a sin), in f32.
  Array operator()(const Array& x, Loc loc = Loc::current()) const;
};

}  // namespace ostro::nn
