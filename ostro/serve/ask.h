// Ask: a request for text, read and checked: everything that its answer depends on.
//
// parse_completion reads the body of /v1/completions, parse_chat that of /v1/chat/completions, parse_response
// that of /v1/responses, parse_embedding that of /v1/embeddings (docs/guide/serve.md lists the fields). An
// ApiError says what is wrong with a body, with the HTTP status. Pure functions, which threads may call with
// the same model.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/serve/gate/metrics.h"
#include "ostro/serve/json/api_error.h"
#include "ostro/serve/json/body.h"
#include "ostro/serve/json/tools.h"
#include "ostro/serve/model/answer.h"

namespace ostro::serve {

enum class Form { kCompletion, kChat, kResponse, kEmbedding };  // of the answer

struct Ask {
  Form form = Form::kCompletion;
  std::vector<std::vector<int32_t>> prompts;  // at least one; each gets `count` answers
  std::vector<std::string> prompt_texts;      // as they were given; "" for a prompt that was given as ids
  int64_t count = 1;
  AnswerOptions options;
  std::optional<uint64_t> seed;  // of the request; without one the server draws it
  std::string owner;             // whose earlier prompts' rows it may share; not told to anyone
  std::string nonce;             // from which the seed follows (receipt.h); empty: none
  RatingOptions rating;
  std::optional<ToolUse> tools;      // how calls in the answer are read; nothing: they are text
  std::string shown_fields;          // of a response: the fields that its answer repeats, a JSON object
  std::shared_ptr<Metrics> metrics;  // that count it; null: none
  std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();
  bool echo = false, stream = false, include_usage = false, return_ids = false, receipt = false;
  bool base64 = false;  // embeddings are written so
};

// The most that one request may ask for; more is an error.
struct AskLimits {
  int64_t prompts = 128;                 // prompts times `n`
  int64_t answers = 16;                  // `n`
  size_t inputs = 2048;                  // of which embeddings are wanted
  int64_t input_tokens = 300'000;        // of them all
  int64_t numbers = 1 << 21;             // of all their embeddings
  size_t stops = 16, stop_bytes = 1024;  // stop strings, and bytes of each
};

using ParsedAsk = std::variant<Ask, ApiError>;
ParsedAsk parse_completion(const ServedModel& model, const Body& body, const AskLimits& limits = {});
ParsedAsk parse_chat(const ServedModel& model, const Body& body, const AskLimits& limits = {});
ParsedAsk parse_response(const ServedModel& model, const Body& body, const AskLimits& limits = {});
ParsedAsk parse_embedding(const ServedModel& model, const Body& body, const AskLimits& limits = {});

}  // namespace ostro::serve
