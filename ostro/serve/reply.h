// Reply: writes the answers of one request in OpenAI's form, whole at the end or as server-sent events.
//
// The calls come from one thread, in this order: for each answer open(), then prompt() and token() as they
// come, then close(); at the end finish(), or fail() at any time.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ostro/http/exchange.h"
#include "ostro/serve/ask.h"
#include "ostro/serve/receipt.h"

namespace ostro::serve {

class Reply {
 public:
  // All must outlive it.
  Reply(const ServedModel& model, const Ask& ask, http::Exchange& exchange);
  ~Reply();

  // The answer with this index, to the prompt `prompt` of the request.
  void open(size_t index, size_t prompt, uint64_t seed);
  void prompt(std::vector<RatedToken> tokens);
  void token(AnswerState& state, RatedToken token);
  void close(AnswerState& state, const std::optional<ReceiptDocument>& receipt);
  void finish();
  void fail(const ApiError& error);

 private:
  struct Choices;

  nlohmann::ordered_json frame(const char* object) const;
  nlohmann::ordered_json usage() const;
  nlohmann::ordered_json log_probs() const;
  void begin_stream();
  void send_chunk(const std::string& text, const char* finish, const nlohmann::ordered_json& more);

  const ServedModel& model_;
  const Ask& ask_;
  http::Exchange& exchange_;
  const std::string id_;
  const int64_t created_;
  size_t index_ = 0, prompt_ = 0;
  uint64_t seed_ = 0;
  int64_t characters_ = 0, answer_characters_ = 0;  // of the text so far, with what is echoed and without
  int64_t prompt_tokens_ = 0, made_tokens_ = 0;
  bool streaming_ = false;
  std::vector<RatedToken> rated_;     // that were not sent yet
  std::vector<int64_t> offsets_;      // of their texts, in characters
  bool first_is_unrated_ = false;     // the first of rated_ begins a prompt
  std::unique_ptr<Choices> choices_;  // of an answer that is sent whole
};

}  // namespace ostro::serve
