// Where in a text each of its tokens lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// For the ids that `tokenizer` gives for `text` (without begin and end tokens): the byte of the text at which
// each token ends; the last ends with the text. A token begins where the one before it ends. White space that
// an added token takes along belongs to it; a space that the tokenizer puts before the text belongs to no
// byte. kUnsupported when the tokens do not spell the text (a normalizer that changes letters), naming the
// first place.
Result<std::vector<size_t>> token_ends(const Tokenizer& tokenizer, std::string_view text,
                                       std::span<const uint32_t> ids);

}  // namespace ostro::tokenizer
