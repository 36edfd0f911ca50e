// token_text and others: tokens as the JSON of answers has them: texts, log-probabilities and places. Private
// to this room. Includes nlohmann/json.hpp, so use it in .cc files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/serve/ask.h"

namespace ostro::serve {

// The token's text; bytes that are no text alone: "bytes:\xe2\x82".
std::string token_text(const tokenizer::Tokenizer& tokenizer, int32_t id);
std::vector<int32_t> ids_of_rated(const std::vector<RatedToken>& tokens);
// The number of characters of a text in UTF-8.
int64_t characters(std::string_view text);
// Where the text of each token begins in the text of all, in characters.
std::vector<int64_t> text_offsets(const tokenizer::Tokenizer& tokenizer,
                                  const std::vector<RatedToken>& tokens);
// What "echo" puts in front of an answer: the prompt as it was given, or the text of its ids.
std::string echoed(const tokenizer::Tokenizer& tokenizer, const Ask& ask, size_t prompt);

// The "logprobs" of a completion, and of a chat. `first_is_unrated`: the first token has none.
nlohmann::ordered_json completion_log_probs(const tokenizer::Tokenizer& tokenizer,
                                            const std::vector<RatedToken>& tokens,
                                            const std::vector<int64_t>& offsets, bool first_is_unrated,
                                            bool likely);
nlohmann::ordered_json chat_log_probs(const tokenizer::Tokenizer& tokenizer,
                                      const std::vector<RatedToken>& tokens);

}  // namespace ostro::serve
