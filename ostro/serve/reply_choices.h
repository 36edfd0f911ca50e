// ChoicesReply: the answers of /v1/completions and /v1/chat/completions. Private to this room.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ostro/serve/reply.h"

namespace ostro::serve {

class ChoicesReply final : public ReplyForm {
 public:
  ChoicesReply(const ServedModel& model, const Ask& ask, http::Exchange& exchange);
  ~ChoicesReply() override;

  void open(size_t index, size_t prompt, uint64_t seed) override;
  void prompt(std::vector<RatedToken> tokens) override;
  void token(AnswerState& state, RatedToken token) override;
  void close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) override;
  void finish() override;
  void fail(const ApiError& error) override;

 private:
  struct Choices;

  nlohmann::ordered_json frame(const char* object) const;
  nlohmann::ordered_json usage() const;
  nlohmann::ordered_json log_probs() const;
  bool is_chat() const { return ask_.form == Form::kChat; }
  void begin_stream();
  void send_chunk(nlohmann::ordered_json choice, const char* finish);
  nlohmann::ordered_json piece(const std::string& text) const;
  // The prompt's text, in front of a streamed answer.
  void send_echo();

  const ServedModel& model_;
  const Ask& ask_;
  http::Exchange& exchange_;
  const std::string id_;
  const int64_t created_;
  size_t index_ = 0, prompt_ = 0;
  uint64_t seed_ = 0;
  int64_t characters_ = 0, answer_characters_ = 0;  // of the text so far, with what is echoed and without
  int64_t prompt_tokens_ = 0, made_tokens_ = 0;
  size_t sent_ = 0;  // of an answer that may hold calls
  bool streaming_ = false;
  std::vector<RatedToken> rated_;     // that were not sent yet
  std::vector<int64_t> offsets_;      // of their texts, in characters
  bool first_is_unrated_ = false;     // the first of rated_ begins a prompt
  std::unique_ptr<Choices> choices_;  // of an answer that is sent whole
};

}  // namespace ostro::serve
