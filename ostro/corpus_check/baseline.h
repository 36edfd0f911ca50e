// Baseline: the cost of held-out text without a model. A trained model's bits per byte are compared with this
// figure. Errors are those of reading the store.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/data/store/token_store.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::corpus_check {

struct Baseline {
  int64_t tokens = 0, bytes = 0;  // of the held-out split: tokens with eos, bytes of text
  // of the training split; converts a training loss in bits per token to bits per byte
  double train_tokens_per_byte = 0;
  double bits_per_token = 0;  // when each held-out token is coded by its frequency in the training split
  double bits_per_byte = 0;   // the same cost, per byte of text
  double uniform_bits_per_byte = 0;  // the cost when all tokens of the vocabulary are equally likely
};

// Codes the held-out split by the token frequencies of the training split. Each count is increased by 1, so
// that no token has probability 0. kInvalidArgument when nothing is held out.
Result<Baseline> unigram_baseline(const data::TokenStore& store);

// Returns the held-out text, document after document, without the tokens at their beginnings and ends.
// General compressors are tried on it.
Result<std::string> held_out_text(const data::TokenStore& store, const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::corpus_check
