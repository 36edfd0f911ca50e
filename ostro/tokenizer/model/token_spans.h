// token_bytes, token_ends: the bytes that a token stands for, and the position of every token in its text.
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// Returns the bytes that the token stands for inside a text. (At the beginning of a text a decoder may leave
// out the space that the tokenizer put there; of SentencePiece's piece for one space nothing would be left.)
// Errors are those of Tokenizer::decode_bytes.
Result<std::string> token_bytes(const Tokenizer& tokenizer, uint32_t id);

// For the ids that `tokenizer` gives for `text` (without begin and end tokens), returns the byte offset where
// each token ends. A token begins where the previous one ends, and the last one ends with the text. White
// space that an added token includes (lstrip, rstrip) belongs to that token. A space that the tokenizer adds
// before the text has no bytes. Error: kUnsupported if the tokens do not spell the text (a normalizer changed
// letters), with the first such place.
Result<std::vector<size_t>> token_ends(const Tokenizer& tokenizer, std::string_view text,
                                       std::span<const uint32_t> ids);

}  // namespace ostro::tokenizer
