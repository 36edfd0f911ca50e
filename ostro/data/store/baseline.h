// What held-out text costs without a model: the figure that a trained model's bits per byte stands beside.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/data/store/token_store.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

struct Baseline {
  int64_t tokens = 0, bytes = 0;     // held out: tokens with eos, bytes of text
  double train_tokens_per_byte = 0;  // turns a training loss in bits per token into bits per byte
  double bits_per_token = 0;  // of the held-out tokens, each coded by its share among the training tokens
  double bits_per_byte = 0;   // the same over the bytes of text
  double uniform_bits_per_byte = 0;  // every token of the vocabulary equally likely
};

// Counts the tokens of the training split, each one once more than it occurs (so that none is impossible),
// and codes the held-out split with these shares. kInvalidArgument when nothing is held out.
Result<Baseline> unigram_baseline(const TokenStore& store);

// The held-out text, document after document as it was read, without eos: for compressors to try on.
Result<std::string> held_out_text(const TokenStore& store, const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::data
