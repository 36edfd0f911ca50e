// format_ids, parse_ids: token ids as text, one document per line: the output of `ostro tokenizer encode` and
// the input of `decode`. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// Returns "1 2 3", or with json "[1, 2, 3]", without a newline.
std::string format_ids(std::span<const uint32_t> ids, bool json);

// Reads both forms. Error: kInvalidArgument, with the first text that is not an id.
Result<std::vector<uint32_t>> parse_ids(std::string_view line);

// Encodes every line of `input` (without its "\n"; the last line may lack it) to a line of ids. With
// whole_input the whole text becomes one line.
std::string encode_text(const Tokenizer& tokenizer, std::string_view input, bool whole_input, bool json,
                        const EncodeOptions& options);

// Decodes every line of ids to bytes, with a "\n" after each. Errors are those of parse_ids and of
// Tokenizer::decode_bytes.
Result<std::string> decode_lines(const Tokenizer& tokenizer, std::string_view lines,
                                 bool skip_special_tokens);

}  // namespace ostro::tokenizer
