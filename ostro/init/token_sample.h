// bytes_per_token: the average length of a text's tokens, before there is a tokenizer for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::init {

// Text of fewer bytes is too little to train on.
inline constexpr int64_t kLeastText = 500;

// Bytes per token with a tokenizer of vocab_size tokens that is trained on the sample. Error: an empty
// sample.
Result<double> bytes_per_token(const std::vector<std::string>& sample, int64_t vocab_size, int threads);

}  // namespace ostro::init
