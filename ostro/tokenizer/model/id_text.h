// Token ids as text, one document a line: what `ostro tokenizer encode` prints and `decode` reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// "1 2 3", or "[1, 2, 3]" with json; without a newline.
std::string format_ids(std::span<const uint32_t> ids, bool json);

// Reads either form; kInvalidArgument names the first thing that is not an id.
Result<std::vector<uint32_t>> parse_ids(std::string_view line);

// A line of ids for every line of `input` (without its "\n"; a last line may lack one), or, with whole_input,
// one line for all of it.
std::string encode_text(const Tokenizer& tokenizer, std::string_view input, bool whole_input, bool json,
                        const EncodeOptions& options);

// The text of every line of ids, as bytes, a "\n" after each.
Result<std::string> decode_lines(const Tokenizer& tokenizer, std::string_view lines,
                                 bool skip_special_tokens);

}  // namespace ostro::tokenizer
