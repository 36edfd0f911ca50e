// decoder_by_layer: a decoder in parts that run one after the other, for a model larger than memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/models/decoder/decoder_options.h"
#include "ostro/models/layer_functions.h"
#include "ostro/nn/adapters.h"

namespace ostro::models {

// Returns the parts of the decoder that ModelOptions::functions makes for these options, vocab, compute and
// lora. `paths` is the order of the parameters (ModelFunctions::paths). Call it outside any trace.
LayerFunctions decoder_by_layer(const DecoderOptions& options, int64_t vocab, const nn::Precision& compute,
                                const std::optional<nn::LoraSpec>& lora,
                                const std::vector<std::string>& paths);

}  // namespace ostro::models
