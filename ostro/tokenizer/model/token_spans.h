// token_ends: finds the position of every token in its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// For the ids that `tokenizer` gives for `text` (without begin and end tokens), returns the byte offset where
// each token ends. A token begins where the previous one ends, and the last one ends with the text. White
// space that an added token includes (lstrip, rstrip) belongs to that token. A space that the tokenizer adds
// before the text has no bytes. Error: kUnsupported if the tokens do not spell the text (a normalizer changed
// letters), with the first such place.
Result<std::vector<size_t>> token_ends(const Tokenizer& tokenizer, std::string_view text,
                                       std::span<const uint32_t> ids);

}  // namespace ostro::tokenizer
