// Rope: rotary position embedding (RoPE). The functions of frequencies are pure; those of Rope are called
// while tracing.
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

// YaRN: frequencies that turn more than beta_fast times within the original context are unchanged, those that
// turn less than beta_slow times are divided by the factor, and there is a linear ramp over the indices
// between.
struct YarnScaling {
  double factor = 4;
  double original_max_position_embeddings = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;  // the ramp's ends are whole indices
};

// Returns theta^(-2i / head_dim) for i < head_dim / 2, scaled, in radians per position. They are computed in
// f64 by the functions of numerics:: and rounded once to f32. In all functions head_dim is the number of
// elements of a head that are rotated, an even number; theta and factors are positive.
std::vector<float> rope_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling = {});
// The default frequencies, all divided by the factor.
std::vector<float> linear_rope_frequencies(int64_t head_dim, double theta, double factor);
// The default frequencies, each divided by its factor; a list of one is for all.
std::vector<float> divided_rope_frequencies(int64_t head_dim, double theta,
                                            const std::vector<double>& factors);
// The frequencies of YaRN.
std::vector<float> yarn_rope_frequencies(int64_t head_dim, double theta, const YarnScaling& scaling);

// cos and sin of position * frequency, f32, with the axes of the positions and then "half" (one for each
// frequency). They are made once per program and shared by all layers. The angle f32(position) * frequency is
// rounded once to f32.
struct Rope {
  Array cos, sin;
  bool interleaved = false;  // pairs are neighbours (0, 1), (2, 3), ... instead of (i, i + half)
  // positions: i32, any axes. cos and sin are multiplied by `scale` unless it is 1.
  static Rope at(const Array& positions, const std::vector<float>& frequencies, double scale = 1);
  // Rotates x [..., head_dim]: the pairs (a, b) of its first 2 * half elements become (a cos - b sin,
  // b cos + a sin), in f32; the rest is unchanged.
  Array operator()(const Array& x, Loc loc = Loc::current()) const;
};

}  // namespace ostro::nn
