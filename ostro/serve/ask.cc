#include "ostro/serve/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ostro/serve/fields.h"
#include "ostro/serve/prompts.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostLikely = 20;
constexpr int64_t kCompletionTokens = 16;  // what OpenAI's API makes of a completion that names no number

// The fields that both paths have.
void common(Fields& fields, const ServedModel& model, const AskLimits& limits, Ask& ask) {
  check_model(fields, model);
  infer::ChoiceOptions& choice = ask.options.choice;
  choice.temperature = 1;
  fields.number("temperature", choice.temperature, 0, 100);
  fields.number("top_p", choice.top_p, 0, 1);
  fields.integer("top_k", choice.top_k, 0, INT32_MAX);
  fields.number("min_p", choice.min_p, 0, 1);
  fields.number("presence_penalty", choice.presence_penalty, -2, 2);
  fields.number("frequency_penalty", choice.frequency_penalty, -2, 2);
  if (choice.top_p == 0) fields.fail("top_p", "is 0, which leaves no token; use more than 0, up to 1");
  if (const Json* bias = fields.find("logit_bias")) choice.bias = biases(fields, *bias, model.tokens());
  fields.integer("n", ask.count, 1, limits.answers);
  fields.texts("stop", ask.options.stop);
  if (ask.options.stop.size() > limits.stops)
    fields.fail("stop",
                fmt::format("has {} strings; at most {} are taken", ask.options.stop.size(), limits.stops));
  for (const std::string& stop : ask.options.stop) {
    if (stop.empty()) fields.fail("stop", "has an empty string: every text would end at once");
    if (stop.size() > limits.stop_bytes)
      fields.fail("stop", fmt::format("has a string of {} bytes; at most {} are taken", stop.size(),
                                      limits.stop_bytes));
  }
  if (const Json* seed = fields.find("seed")) {
    if (seed->is_number_unsigned())
      ask.seed = seed->get<uint64_t>();
    else
      fields.fail("seed", fmt::format("is {}; use an integer from 0 to {}", shown(*seed), UINT64_MAX));
  }
  fields.text("nonce", ask.nonce);
  constexpr size_t kMostNonce = 256;
  if (ask.nonce.size() > kMostNonce)
    fields.fail("nonce", fmt::format("has {} bytes; at most {} are taken", ask.nonce.size(), kMostNonce));
  if (!ask.nonce.empty() && ask.seed) fields.fail("nonce", "decides the seed; leave out \"seed\"");
  fields.flag("receipt", ask.receipt);
  fields.flag("return_token_ids", ask.return_ids);
  fields.flag("stream", ask.stream);
  if (const Json* options = fields.find("stream_options")) {
    if (!options->is_object()) return fields.fail("stream_options", "has to be an object");
    Fields inside(*options, "stream_options");
    inside.flag("include_usage", ask.include_usage);
    if (const auto error = inside.finish()) fields.fail("stream_options", "is wrong: " + error->message);
    if (!ask.stream) fields.fail("stream_options", "goes with \"stream\": true");
  }
}

// Whether every prompt leaves room for a token, where one is wanted.
void check_room(Fields& fields, const std::string& name, const ServedModel& model, const Ask& ask) {
  const int64_t room = model.facts.context - (ask.options.max_tokens > 0 ? 1 : 0);
  for (const auto& prompt : ask.prompts)
    if (static_cast<int64_t>(prompt.size()) > room)
      fields.fail(
          name, fmt::format("has {} tokens; the model's context is {}{}", prompt.size(), model.facts.context,
                            ask.options.max_tokens > 0 ? ", the answer's included" : ""));
}

}  // namespace

ParsedAsk parse_completion(const ServedModel& model, std::string_view body, const AskLimits& limits) {
  Json json;
  if (auto error = parse_body(body, json)) return *error;
  Fields fields(json);
  Ask ask;
  common(fields, model, limits, ask);
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr)
    fields.fail("prompt", "is missing; it is a text, a list of token ids, or a list of these");
  else
    read_prompts(fields, *prompt, model, ask.prompts, ask.prompt_texts);
  const auto answers = static_cast<int64_t>(ask.prompts.size()) * ask.count;
  if (answers > limits.prompts)
    fields.fail("prompt", fmt::format("asks for {} answers; at most {} are taken", answers, limits.prompts));
  ask.options.max_tokens = kCompletionTokens;
  fields.integer("max_tokens", ask.options.max_tokens, 0, INT32_MAX);
  if (fields.find("logprobs") != nullptr) {
    ask.rating.log_probs = true;
    fields.integer("logprobs", ask.rating.likely, 0, kMostLikely);
  }
  fields.flag("echo", ask.echo);
  ask.rating.prompt = ask.echo && ask.rating.log_probs;
  if (ask.echo && ask.stream) fields.fail("echo", "does not go with \"stream\"");
  if (!fields.failed()) check_room(fields, "prompt", model, ask);
  if (auto error = fields.finish()) return *error;
  return ask;
}

ParsedAsk parse_chat(const ServedModel& model, std::string_view body, const AskLimits& limits) {
  Json json;
  if (auto error = parse_body(body, json)) return *error;
  Fields fields(json);
  Ask ask;
  ask.is_chat = true;
  common(fields, model, limits, ask);
  const Json* messages = fields.find("messages");
  if (messages == nullptr)
    fields.fail("messages", "is missing; it is a list of {\"role\": ..., \"content\": ...}");
  else
    ask.prompts.push_back(chat_ids(fields, *messages, model, true));
  ask.options.max_tokens = model.facts.context;
  fields.integer("max_tokens", ask.options.max_tokens, 1, INT32_MAX);
  fields.integer("max_completion_tokens", ask.options.max_tokens, 1, INT32_MAX);
  fields.flag("logprobs", ask.rating.log_probs);
  fields.integer("top_logprobs", ask.rating.likely, 0, kMostLikely);
  if (ask.rating.likely > 0 && !ask.rating.log_probs)
    fields.fail("top_logprobs", "goes with \"logprobs\": true");
  if (!fields.failed()) check_room(fields, "messages", model, ask);
  if (auto error = fields.finish()) return *error;
  return ask;
}

}  // namespace ostro::serve
