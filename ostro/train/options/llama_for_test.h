// For tests that change the options of the default model, a Llama.
#pragma once

#include "ostro/models/decoder/decoder.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

inline models::DecoderOptions& llama(TrainConfig& config) {
  return dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>&>(
             config.model_options())
      .options;
}

}  // namespace ostro::train
