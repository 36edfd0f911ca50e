#include "ostro/serve/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/chain/version.h"
#include "ostro/serve/receipt_json.h"
#include "ostro/serve/token_text.h"

namespace ostro::serve {

using Json = nlohmann::ordered_json;

struct Reply::Choices {
  Json list = Json::array();
};

namespace {

std::string new_id(bool is_chat) {
  const Nonce nonce = new_nonce();
  return (is_chat ? "chatcmpl-" : "cmpl-") + to_hex_digits({nonce.data(), 12});
}

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

const char* finish_reason(Finish finish) { return finish == Finish::kLength ? "length" : "stop"; }

}  // namespace

Reply::Reply(const ServedModel& model, const Ask& ask, http::Exchange& exchange)
    : model_(model),
      ask_(ask),
      exchange_(exchange),
      id_(new_id(ask.is_chat)),
      created_(seconds_since_1970()),
      choices_(std::make_unique<Choices>()) {
  for (const auto& prompt : ask.prompts) prompt_tokens_ += static_cast<int64_t>(prompt.size());
}
Reply::~Reply() = default;

Json Reply::frame(const char* object) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_.facts.name},
          {"system_fingerprint", fmt::format("ostro-{}-{}", chain::kNumericsVersion, model_.facts.state)}};
}

Json Reply::usage() const {
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", made_tokens_},
          {"total_tokens", prompt_tokens_ + made_tokens_}};
}

Json Reply::log_probs() const {
  if (!ask_.rating.log_probs) return {};
  return ask_.is_chat ? chat_log_probs(*model_.tokenizer, rated_)
                      : completion_log_probs(*model_.tokenizer, rated_, offsets_, first_is_unrated_,
                                             ask_.rating.likely > 0);
}

void Reply::open(size_t index, size_t prompt, uint64_t seed) {
  index_ = index;
  prompt_ = prompt;
  seed_ = seed;
  rated_.clear();
  offsets_.clear();
  first_is_unrated_ = false;
  answer_characters_ = 0;
  characters_ = ask_.echo ? characters(echoed(*model_.tokenizer, ask_, prompt_)) : 0;
  if (!ask_.stream) return;
  begin_stream();
  if (ask_.is_chat) {
    Json chunk = frame("chat.completion.chunk");
    chunk["choices"] = {{{"index", index_},
                         {"delta", {{"role", "assistant"}, {"content", ""}}},
                         {"logprobs", nullptr},
                         {"finish_reason", nullptr}}};
    exchange_.send("data: " + chunk.dump() + "\n\n");
  }
}

void Reply::begin_stream() {
  if (!std::exchange(streaming_, true)) exchange_.begin({200, "text/event-stream; charset=utf-8"});
}

void Reply::prompt(std::vector<RatedToken> tokens) {
  rated_ = std::move(tokens);
  first_is_unrated_ = true;
  offsets_ = text_offsets(*model_.tokenizer, rated_);
}

// The end of an answer is sent with what close() knows.
void Reply::token(AnswerState& state, RatedToken token) {
  ++made_tokens_;
  offsets_.push_back(characters_);
  characters_ += state.text().characters() - std::exchange(answer_characters_, state.text().characters());
  rated_.push_back(std::move(token));
  if (!ask_.stream || state.finish() != Finish::kNone) return;
  const std::string text = state.text().take();
  if (!text.empty() || ask_.rating.log_probs || ask_.return_ids) send_chunk(text, nullptr, Json::object());
}

// With the text, what came with it: log-probabilities and ids of the tokens since the last chunk.
void Reply::send_chunk(const std::string& text, const char* finish, const Json& more) {
  Json choice = {{"index", index_}};
  if (ask_.is_chat)
    choice["delta"] = text.empty() ? Json::object() : Json{{"content", text}};
  else
    choice["text"] = text;
  choice["logprobs"] = log_probs();
  choice["finish_reason"] = finish == nullptr ? Json() : Json(finish);
  if (ask_.return_ids) choice["token_ids"] = ids_of_rated(rated_);
  choice.update(more);
  rated_.clear();
  offsets_.clear();
  Json chunk = frame(ask_.is_chat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = Json::array({choice});
  if (ask_.include_usage) chunk["usage"] = nullptr;
  exchange_.send("data: " + chunk.dump() + "\n\n");
}

void Reply::close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) {
  Json more = {{"seed", seed_}};
  if (ask_.return_ids) more["prompt_token_ids"] = state.prompt();
  if (receipt) more["receipt"] = document_json(*receipt);
  if (ask_.stream) return send_chunk(state.text().take(), finish_reason(state.finish()), more);
  Json choice = {{"index", index_}};
  const std::string text(state.text().text());
  if (ask_.is_chat)
    choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  else
    choice["text"] = ask_.echo ? echoed(*model_.tokenizer, ask_, prompt_) + text : text;
  choice["logprobs"] = log_probs();
  choice["finish_reason"] = finish_reason(state.finish());
  if (ask_.return_ids) choice["token_ids"] = state.made();
  choice.update(more);
  choices_->list.push_back(std::move(choice));
}

void Reply::finish() {
  if (!ask_.stream) {
    Json out = frame(ask_.is_chat ? "chat.completion" : "text_completion");
    out["choices"] = std::move(choices_->list);
    out["usage"] = usage();
    return exchange_.answer({200, "application/json", out.dump() + "\n"});
  }
  if (ask_.include_usage) {
    Json chunk = frame(ask_.is_chat ? "chat.completion.chunk" : "text_completion");
    chunk["choices"] = Json::array();
    chunk["usage"] = usage();
    exchange_.send("data: " + chunk.dump() + "\n\n");
  }
  exchange_.send("data: [DONE]\n\n");
  exchange_.end();
}

void Reply::fail(const ApiError& error) {
  if (!streaming_) return exchange_.answer(error_response(error));
  exchange_.send("data: " + error_json(error) + "\n\n");
  exchange_.end();
}

}  // namespace ostro::serve
