// choose_sizes: the sizes of a model and its training for an amount of text and a machine.
//
// Pure functions without errors. The text and the machine have been measured before (survey.h, machine.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ostro/init/machine.h"

namespace ostro::init {

// The amount of text to train on.
struct TextAmount {
  int64_t bytes = 0;  // of training text
  int64_t documents = 0;
  double bytes_per_token = 0;  // with a vocabulary of Sizes::vocab_size
  int64_t held_out_bytes = 0;
};

// The values of the configuration's keys that `ostro init` chooses.
struct Sizes {
  int64_t vocab_size = 0, seq_len = 0;
  int64_t hidden_dim = 0, intermediate_dim = 0, num_layers = 0, num_heads = 0, num_kv_heads = 0;
  int64_t batch = 0, steps = 0, steps_per_eval = 0, keep_every = 0, chunk_cache_mib = 0;
  double learning_rate = 0, weight_decay = 0;
  // These follow from the numbers above; flops are those of the whole training.
  double epochs = 0, parameters = 0, flops = 0,
         seconds = 0;  // seconds: an estimate; 0 where no speed is known
  double memory_bytes = 0;
  // The reason for each value, in one line, by the name of the key in the configuration.
  std::map<std::string, std::string> why;
};

// The number of tokens of a vocabulary for `bytes` of training text.
int64_t choose_vocab_size(int64_t bytes);

// All sizes for a vocabulary of `vocab_size` tokens. The run takes about `minutes` at most, and less if the
// text is used up earlier.
Sizes choose_sizes(const TextAmount& text, int64_t vocab_size, const Machine& machine, double minutes);

// A duration as a person writes it: "43 s", "2 min 40 s", "3.2 h", "12 days".
std::string duration_text(double seconds);

}  // namespace ostro::init
