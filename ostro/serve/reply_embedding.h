// EmbeddingReply: the answer of /v1/embeddings. Private to this room.
#pragma once

#include <string>

#include "ostro/serve/reply.h"

namespace ostro::serve {

// Its text grows with each embedding; a tree of JSON would take several times the memory.
class EmbeddingReply final : public ReplyForm {
 public:
  EmbeddingReply(const ServedModel& model, const Ask& ask, http::Exchange& exchange)
      : model_(model), ask_(ask), exchange_(exchange) {}

  void open(size_t, size_t, uint64_t) override {}
  void prompt(std::vector<RatedToken>) override {}
  void token(AnswerState&, RatedToken) override {}
  void pooled(std::span<const float> values) override;
  void close(AnswerState&, const std::optional<ReceiptDocument>&) override {}
  void finish() override;
  void fail(const ApiError& error) override { exchange_.answer(error_response(error)); }

 private:
  const ServedModel& model_;
  const Ask& ask_;
  http::Exchange& exchange_;
  std::string data_;
  int64_t count_ = 0;
};

}  // namespace ostro::serve
