// ResponseReply: the answer of /v1/responses. Private to this room.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ostro/serve/reply.h"

namespace ostro::serve {

class ResponseReply final : public ReplyForm {
 public:
  ResponseReply(const ServedModel& model, const Ask& ask, http::Exchange& exchange);
  ~ResponseReply() override;

  void open(size_t index, size_t prompt, uint64_t seed) override;
  void prompt(std::vector<RatedToken> tokens) override;
  void token(AnswerState& state, RatedToken token) override;
  void close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) override;
  void finish() override;
  void fail(const ApiError& error) override;

 private:
  struct Parts;

  // The response as it is now.
  nlohmann::ordered_json response(const char* status) const;
  void send_event(const char* type, nlohmann::ordered_json fields);
  // More of the text, which opens the message that it is in.
  void send_text(const std::string& text);
  nlohmann::ordered_json message(const std::string& text, const char* status) const;
  void close_message(const std::string& text);
  void add_call(const ToolCall& call);

  const ServedModel& model_;
  const Ask& ask_;
  http::Exchange& exchange_;
  const std::string id_, message_id_;
  const int64_t created_;
  uint64_t seed_ = 0;
  int64_t made_tokens_ = 0, events_ = 0;
  size_t sent_ = 0;
  bool streaming_ = false, has_message_ = false;
  const char* status_ = "in_progress";
  std::vector<RatedToken> rated_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace ostro::serve
