// llama, tiny_llama: for tests that change the options of the default model, a Llama.
#pragma once

#include "ostro/models/decoder/decoder.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

inline models::DecoderOptions& llama(TrainConfig& config) {
  return dynamic_cast<models::ModelOptionsOf<models::DecoderOptions, models::Decoder>&>(
             config.model_options())
      .options;
}

// A run of ten steps of the smallest Llama; not resolved yet.
inline TrainConfig tiny_llama() {
  TrainConfig c;
  auto& o = llama(c);
  o.seq_len = 4;
  o.hidden_dim = 4;
  o.intermediate_dim = 4;
  o.num_layers = 1;
  o.num_heads = 1;
  o.num_kv_heads = 1;
  c.data.train_urls = {"text"};
  c.trainer.train_batch_size = 2;
  c.trainer.num_train_steps = 10;
  return c;
}

}  // namespace ostro::train
