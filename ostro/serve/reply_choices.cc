#include "ostro/serve/reply_choices.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/serve/json/reply_parts.h"
#include "ostro/serve/receipts/receipt_json.h"
#include "ostro/serve/token_text.h"

namespace ostro::serve {

using Json = nlohmann::ordered_json;

struct ChoicesReply::Choices {
  Json list = Json::array();
};

ChoicesReply::ChoicesReply(const ServedModel& model, const Ask& ask, http::Exchange& exchange)
    : model_(model),
      ask_(ask),
      exchange_(exchange),
      id_(new_id(ask.form == Form::kChat ? "chatcmpl-" : "cmpl-")),
      created_(seconds_since_1970()),
      choices_(std::make_unique<Choices>()) {
  for (const auto& prompt : ask.prompts) prompt_tokens_ += static_cast<int64_t>(prompt.size());
}
ChoicesReply::~ChoicesReply() = default;

Json ChoicesReply::frame(const char* object) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_.facts.name},
          {"system_fingerprint", fingerprint(model_.facts.parameters())}};
}

Json ChoicesReply::usage() const {
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", made_tokens_},
          {"total_tokens", prompt_tokens_ + made_tokens_}};
}

Json ChoicesReply::log_probs() const {
  if (!ask_.rating.log_probs) return {};
  return is_chat() ? chat_log_probs(*model_.tokenizer, rated_)
                   : completion_log_probs(*model_.tokenizer, rated_, offsets_, first_is_unrated_,
                                          ask_.rating.likely > 0);
}

void ChoicesReply::open(size_t index, size_t prompt, uint64_t seed) {
  index_ = index;
  prompt_ = prompt;
  seed_ = seed;
  rated_.clear();
  offsets_.clear();
  first_is_unrated_ = false;
  answer_characters_ = 0;
  sent_ = 0;
  characters_ = ask_.echo ? characters(echoed(*model_.tokenizer, ask_, prompt_)) : 0;
  if (!ask_.stream) return;
  begin_stream();
  if (is_chat()) {
    send_chunk({{"delta", {{"role", "assistant"}, {"content", ""}}}}, nullptr);
  } else if (ask_.echo && !ask_.rating.prompt) {
    send_echo();
  }
}

void ChoicesReply::send_echo() { send_chunk({{"text", echoed(*model_.tokenizer, ask_, prompt_)}}, nullptr); }

void ChoicesReply::begin_stream() {
  if (!std::exchange(streaming_, true)) exchange_.begin({200, "text/event-stream; charset=utf-8"});
}

void ChoicesReply::prompt(std::vector<RatedToken> tokens) {
  rated_ = std::move(tokens);
  first_is_unrated_ = true;
  offsets_ = text_offsets(*model_.tokenizer, rated_);
  if (ask_.stream) send_echo();
}

// The end of an answer is sent with what close() knows.
void ChoicesReply::token(AnswerState& state, RatedToken token) {
  ++made_tokens_;
  offsets_.push_back(characters_);
  characters_ += state.text().characters() - std::exchange(answer_characters_, state.text().characters());
  rated_.push_back(std::move(token));
  if (!ask_.stream || state.finish() != Finish::kNone) return;
  std::string text = state.text().take();
  if (ask_.tools) {
    const std::string_view all = state.text().text();
    const size_t certain = std::max(certain_content(ask_.tools->format, all), sent_);
    text = all.substr(sent_, certain - sent_);
    sent_ = certain;
  }
  if (text.empty() && !ask_.rating.log_probs && !ask_.return_ids) return;
  Json choice = piece(text);
  if (ask_.return_ids) choice["token_ids"] = ids_of_rated(rated_);
  send_chunk(std::move(choice), nullptr);
}

Json ChoicesReply::piece(const std::string& text) const {
  if (!is_chat()) return {{"text", text}};
  return {{"delta", text.empty() ? Json::object() : Json{{"content", text}}}};
}

// With what is in `choice`, what came with it: log-probabilities of the tokens since the last chunk.
void ChoicesReply::send_chunk(Json choice, const char* finish) {
  Json out = {{"index", index_}};
  out.update(choice);
  out["logprobs"] = log_probs();
  out["finish_reason"] = finish == nullptr ? Json() : Json(finish);
  rated_.clear();
  offsets_.clear();
  first_is_unrated_ = false;
  Json chunk = frame(is_chat() ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = Json::array({std::move(out)});
  if (ask_.include_usage) chunk["usage"] = nullptr;
  exchange_.send("data: " + json_text(chunk) + "\n\n");
}

void ChoicesReply::close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) {
  Json more = {{"seed", seed_}};
  if (ask_.return_ids) more["prompt_token_ids"] = state.prompt();
  if (state.finish() == Finish::kTime) more["ended_by"] = kEndedByTime;
  if (receipt) more["receipt"] = document_json(*receipt);
  const std::string text(state.text().text());
  const auto calls = ask_.tools ? parse_calls(*ask_.tools, text) : std::nullopt;
  const char* finish = calls ? "tool_calls" : is_cut(state.finish()) ? "length" : "stop";
  if (ask_.stream) {
    std::string rest = state.text().take();
    if (ask_.tools) {
      const std::string& content = calls ? calls->content : text;
      rest = content.substr(std::min(sent_, content.size()));
    }
    Json choice = piece(rest);
    if (calls) choice["delta"]["tool_calls"] = calls_json(calls->calls, true);
    if (ask_.return_ids) choice["token_ids"] = ids_of_rated(rated_);
    choice.update(more);
    return send_chunk(std::move(choice), finish);
  }
  Json choice = {{"index", index_}};
  if (is_chat()) {
    Json& message = choice["message"];
    message = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
    if (calls) {
      message["content"] = calls->content.empty() ? Json() : Json(calls->content);
      message["tool_calls"] = calls_json(calls->calls, false);
    }
  } else {
    choice["text"] = ask_.echo ? echoed(*model_.tokenizer, ask_, prompt_) + text : text;
  }
  choice["logprobs"] = log_probs();
  choice["finish_reason"] = finish;
  if (ask_.return_ids) choice["token_ids"] = state.made();
  choice.update(more);
  choices_->list.push_back(std::move(choice));
}

void ChoicesReply::finish() {
  if (!ask_.stream) {
    Json out = frame(is_chat() ? "chat.completion" : "text_completion");
    out["choices"] = std::move(choices_->list);
    out["usage"] = usage();
    return exchange_.answer(json_response(out));
  }
  if (ask_.include_usage) {
    Json chunk = frame(is_chat() ? "chat.completion.chunk" : "text_completion");
    chunk["choices"] = Json::array();
    chunk["usage"] = usage();
    exchange_.send("data: " + json_text(chunk) + "\n\n");
  }
  exchange_.send("data: [DONE]\n\n");
  exchange_.end();
}

void ChoicesReply::fail(const ApiError& error) {
  if (!streaming_) return exchange_.answer(error_response(error));
  exchange_.send("data: " + error_json(error) + "\n\n");
  exchange_.end();
}

}  // namespace ostro::serve
