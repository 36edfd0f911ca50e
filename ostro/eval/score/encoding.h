// continuation_window, rolling_windows: turn texts into windows of tokens to be scored, by the rules of
// lm-evaluation-harness. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/eval/score/token_scorer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::eval {

// The token that stands before a text without a context: TextEnds::alone (tokenizer/model/text_ends.h).
// Error: the tokenizer has none.
Result<int32_t> prefix_token(const tokenizer::Tokenizer& tokenizer);

// The window of a continuation after its context. Spaces at the end of the context count as the beginning of
// the continuation, and both are encoded as one text, which begins as a prompt does. An empty context is
// prefix_token. A continuation without a token of its own is encoded by itself. Tokens that do not
// fit into `context_length` positions are left out at the front. Errors: the continuation has no token of its
// own, or more than context_length tokens.
Result<Window> continuation_window(const tokenizer::Tokenizer& tokenizer, std::string_view context,
                                   std::string_view continuation, int64_t context_length);

// Windows in which each token of the text is scored once. The first begins with `prefix`; each later one
// scores the next `stride` tokens (1 to context_length), or those that are left, after as many of the tokens
// before as fit. No tokens: no windows.
std::vector<Window> rolling_windows(const std::vector<uint32_t>& text, int32_t prefix, int64_t context_length,
                                    int64_t stride);

}  // namespace ostro::eval
