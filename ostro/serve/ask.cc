#include "ostro/serve/ask.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/serve/json/conversation.h"
#include "ostro/serve/json/fields.h"
#include "ostro/serve/json/standing_fields.h"
#include "ostro/serve/prompts.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostLikely = 20;
constexpr int64_t kCompletionTokens = 16;  // what OpenAI's API makes of a completion that names no number

// The fields that all paths have.
void sampling(Fields& fields, const ServedModel& model, const AskLimits& limits, Ask& ask) {
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
  if (const Json* bias = fields.find("logit_bias")) choice.bias = biases(fields, *bias, *model.tokenizer);
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
}

// The fields that completions and chats have besides.
void choices(Fields& fields, const AskLimits& limits, Ask& ask) {
  fields.integer("n", ask.count, 1, limits.answers);
  if (const Json* options = fields.find("stream_options")) {
    if (!options->is_object()) return fields.fail("stream_options", "has to be an object");
    Fields inside(*options, "stream_options");
    inside.flag("include_usage", ask.include_usage);
    if (const auto error = inside.finish()) fields.fail("stream_options", "is wrong: " + error->message);
    if (!ask.stream) fields.fail("stream_options", "goes with \"stream\": true");
  }
}

void use_tools(const ServedModel& model, const Functions& functions, Ask& ask) {
  if (model.tool_format && !functions.names.empty()) ask.tools = ToolUse{*model.tool_format, functions.names};
}

void read_conversation(Fields& fields, const std::string& name, const Json& messages,
                       const Functions& functions, const ServedModel& model, Ask& ask) {
  const std::string text =
      chat_text(fields, name, messages, functions.list, read_variables(fields), model, true);
  ask.prompts.push_back(chat_ids(fields, name, text, model));
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

ParsedAsk parse_completion(const ServedModel& model, const Body& body, const AskLimits& limits) {
  if (body.error()) return *body.error();
  const Json& json = body.json();
  Fields fields(json);
  Ask ask;
  sampling(fields, model, limits, ask);
  choices(fields, limits, ask);
  read_standing_completion(fields, ask.count);
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr)
    fields.fail("prompt", "is missing; it is a text, a list of token ids, or a list of these");
  else
    read_prompts(fields, "prompt", *prompt, model, static_cast<size_t>(limits.prompts), ask.prompts,
                 ask.prompt_texts);
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
  if (!fields.failed()) check_room(fields, "prompt", model, ask);
  if (auto error = fields.finish()) return *error;
  return ask;
}

ParsedAsk parse_chat(const ServedModel& model, const Body& body, const AskLimits& limits) {
  if (body.error()) return *body.error();
  const Json& json = body.json();
  Fields fields(json);
  Ask ask;
  ask.form = Form::kChat;
  sampling(fields, model, limits, ask);
  choices(fields, limits, ask);
  read_standing_chat(fields);
  const Functions functions = read_tools(fields, false);
  use_tools(model, functions, ask);
  const Json* messages = fields.find("messages");
  if (messages == nullptr)
    fields.fail("messages", "is missing; it is a list of {\"role\": ..., \"content\": ...}");
  else
    read_conversation(fields, "messages", read_messages(fields, *messages), functions, model, ask);
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

// What /v1/responses has of its own: the others' fields under other names, and what is refused because this
// server keeps nothing.
ParsedAsk parse_response(const ServedModel& model, const Body& body, const AskLimits& limits) {
  if (body.error()) return *body.error();
  const Json& json = body.json();
  Fields fields(json);
  Ask ask;
  ask.form = Form::kResponse;
  sampling(fields, model, limits, ask);
  read_standing_response(fields);
  bool store = false;
  fields.flag("store", store);
  if (store)
    fields.fail("store",
                "is true; this server keeps no responses, so send the whole conversation as \"input\"");
  if (fields.find("previous_response_id") != nullptr)
    fields.fail("previous_response_id",
                "names a response, and this server keeps none; send the whole conversation as \"input\"");
  std::string instructions;
  fields.text("instructions", instructions);
  const Functions functions = read_tools(fields, true);
  use_tools(model, functions, ask);
  if (const Json* text = fields.find("text")) {
    const Json format = text->is_object() && text->contains("format") ? (*text)["format"] : Json();
    if (!text->is_object() || text->size() != 1 || format != Json{{"type", "text"}})
      fields.fail("text",
                  "is something else than {\"format\": {\"type\": \"text\"}}; this server does not force "
                  "answers into a format");
  }
  std::vector<std::string> include;
  fields.texts("include", include);
  for (const std::string& one : include)
    if (one != "message.output_text.logprobs")
      fields.fail("include", fmt::format("has \"{}\"; this server has message.output_text.logprobs", one));
  ask.rating.log_probs = !include.empty();
  fields.integer("top_logprobs", ask.rating.likely, 0, kMostLikely);
  if (ask.rating.likely > 0 && !ask.rating.log_probs)
    fields.fail("top_logprobs", "goes with \"include\": [\"message.output_text.logprobs\"]");
  ask.options.max_tokens = model.facts.context;
  fields.integer("max_output_tokens", ask.options.max_tokens, 1, INT32_MAX);
  const Json* input = fields.find("input");
  if (input == nullptr)
    fields.fail("input", "is missing; it is a text or a list of items");
  else
    read_conversation(fields, "input", read_items(fields, *input, instructions), functions, model, ask);
  if (!fields.failed()) check_room(fields, "input", model, ask);
  if (auto error = fields.finish()) return *error;
  const auto given = [&](const char* name, Json otherwise) {
    return json.contains(name) && !json[name].is_null() ? json[name] : std::move(otherwise);
  };
  ask.shown_fields = Json{{"instructions", given("instructions", nullptr)},
                          {"max_output_tokens", given("max_output_tokens", nullptr)},
                          {"metadata", given("metadata", Json::object())},
                          {"parallel_tool_calls", true},
                          {"previous_response_id", nullptr},
                          {"store", false},
                          {"temperature", ask.options.choice.temperature},
                          {"text", {{"format", {{"type", "text"}}}}},
                          {"tool_choice", given("tool_choice", "auto")},
                          {"tools", given("tools", Json::array())},
                          {"top_logprobs", ask.rating.likely},
                          {"top_p", ask.options.choice.top_p},
                          {"truncation", "disabled"},
                          {"user", given("user", nullptr)}}
                         .dump();
  return ask;
}

}  // namespace ostro::serve
