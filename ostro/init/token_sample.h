// How long the tokens of a text will be, before there is a tokenizer for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::init {

// Text of fewer bytes is no use to train on.
inline constexpr int64_t kLeastText = 500;

// Bytes a token, by a tokenizer of so many tokens that is trained on the sample. Errors: an empty sample.
Result<double> bytes_per_token(const std::vector<std::string>& sample, int64_t vocab_size, int threads);

}  // namespace ostro::init
