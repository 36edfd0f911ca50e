// bytes_per_token: estimates the average length of a text's tokens before there is a tokenizer for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::init {

// `ostro init` refuses text of fewer bytes than this: it is too little to train on.
inline constexpr int64_t kLeastText = 500;

// Returns the bytes per token of the sample, with a tokenizer of vocab_size tokens that is trained on the
// sample with `threads` threads. The token that ends a document counts. Errors: kInvalidArgument for a sample
// without text, and those of tokenizer::train. Thread-safe.
Result<double> bytes_per_token(const std::vector<std::string>& sample, int64_t vocab_size, int threads);

}  // namespace ostro::init
