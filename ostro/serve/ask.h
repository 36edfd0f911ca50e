// Ask: a request for text, read and checked: everything that its answer depends on.
//
// parse_completion reads the body of /v1/completions, parse_chat that of /v1/chat/completions
// (docs/guide/serve.md lists the fields). Pure functions; a model's parts that they use may be shared.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/serve/answer.h"
#include "ostro/serve/api_error.h"

namespace ostro::serve {

struct Ask {
  bool is_chat = false;
  std::vector<std::vector<int32_t>> prompts;  // at least one; each gets `count` answers
  std::vector<std::string> prompt_texts;      // as they were given; empty where ids were given
  int64_t count = 1;
  AnswerOptions options;
  std::optional<uint64_t> seed;  // that was given; otherwise the server draws one
  std::string nonce;             // from which the seed follows (receipt.h); empty: none
  RatingOptions rating;
  bool echo = false, stream = false, include_usage = false, return_ids = false, receipt = false;
};

// How much of a request is taken.
struct AskLimits {
  int64_t prompts = 128;  // of one request, each times `n`
  int64_t answers = 16;   // `n`
  size_t stops = 16, stop_bytes = 1024;
};

using ParsedAsk = std::variant<Ask, ApiError>;
ParsedAsk parse_completion(const ServedModel& model, std::string_view body, const AskLimits& limits = {});
ParsedAsk parse_chat(const ServedModel& model, std::string_view body, const AskLimits& limits = {});

// The path's answer for a body {"prompt": S} or {"messages": [...]}, and for one {"tokens": [...]}.
http::Response tokenize(const ServedModel& model, std::string_view body);
http::Response detokenize(const ServedModel& model, std::string_view body);

}  // namespace ostro::serve
