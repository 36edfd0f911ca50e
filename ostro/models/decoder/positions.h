// The rotary positions of a decoder's layers.
#pragma once

#include "ostro/models/decoder/decoder_options.h"
#include "ostro/nn/rope.h"

namespace ostro::models {

// By `model.rope`, as layers without a window have them; `local`: by rope_local_theta.
nn::Rope rope_at(const DecoderOptions& options, const Array& positions, bool local = false);

}  // namespace ostro::models
