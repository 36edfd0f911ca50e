// For tests that change the options of the default model, a Llama.
#pragma once

#include "ostro/models/llama.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

inline models::LlamaOptions& llama(TrainConfig& config) {
  return dynamic_cast<models::ModelOptionsOf<models::LlamaOptions, models::Llama>&>(config.model_options())
      .options;
}

}  // namespace ostro::train
