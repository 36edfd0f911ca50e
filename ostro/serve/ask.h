// Ask: a request for text, read and checked: everything that its answer depends on.
//
// parse_completion reads the body of /v1/completions, parse_chat that of /v1/chat/completions
// (docs/guide/serve.md lists the fields). An ApiError says what is wrong with a body, with the HTTP status.
// Pure functions, which threads may call with the same model.
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
  std::vector<std::string> prompt_texts;      // as they were given; "" for a prompt that was given as ids
  int64_t count = 1;
  AnswerOptions options;
  std::optional<uint64_t> seed;  // of the request; without one the server draws it
  std::string nonce;             // from which the seed follows (receipt.h); empty: none
  RatingOptions rating;
  bool echo = false, stream = false, include_usage = false, return_ids = false, receipt = false;
};

// The most that one request may ask for; more is an error.
struct AskLimits {
  int64_t prompts = 128;                 // prompts times `n`
  int64_t answers = 16;                  // `n`
  size_t stops = 16, stop_bytes = 1024;  // stop strings, and bytes of each
};

using ParsedAsk = std::variant<Ask, ApiError>;
ParsedAsk parse_completion(const ServedModel& model, std::string_view body, const AskLimits& limits = {});
ParsedAsk parse_chat(const ServedModel& model, std::string_view body, const AskLimits& limits = {});

// The answer to a request to /tokenize, whose body is {"prompt": S} or {"messages": [...]}, and to one to
// /detokenize, whose body is {"tokens": [...]}. A wrong body is answered with status 400.
http::Response tokenize(const ServedModel& model, std::string_view body);
http::Response detokenize(const ServedModel& model, std::string_view body);

}  // namespace ostro::serve
