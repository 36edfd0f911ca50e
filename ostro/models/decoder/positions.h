// rope_at: the rotary positions of a decoder's layers.
#pragma once

#include "ostro/models/decoder/decoder_options.h"
#include "ostro/nn/rope.h"

namespace ostro::models {

// Returns the rotation for positions i32 of any axes: by `model.rope`, or if `local`, by rope_local_theta,
// for layers with a window. With `local`, rope_local_theta must be set. Called while tracing.
nn::Rope rope_at(const DecoderOptions& options, const Array& positions, bool local = false);

}  // namespace ostro::models
