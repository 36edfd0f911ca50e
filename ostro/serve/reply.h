// Reply: writes the answers of one request in OpenAI's form, whole at the end or as server-sent events, and
// counts what it writes.
//
// The calls come from one thread, in this order: for each answer open(), then prompt() and token() as they
// come, or pooled(), then close(); at the end finish(), or fail() at any time. The request runs as long as it
// lives.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ostro/http/exchange.h"
#include "ostro/serve/ask.h"
#include "ostro/serve/receipts/receipt.h"

namespace ostro::serve {

// One form of the answers (reply_choices.h, reply_response.h, reply_embedding.h). The calls are those of
// Reply.
class ReplyForm {
 public:
  virtual ~ReplyForm() = default;
  virtual void open(size_t index, size_t prompt, uint64_t seed) = 0;
  virtual void prompt(std::vector<RatedToken> tokens) = 0;
  virtual void token(AnswerState& state, RatedToken token) = 0;
  // An embedding, before close().
  virtual void pooled(std::span<const float>) {}
  virtual void close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) = 0;
  virtual void finish() = 0;
  virtual void fail(const ApiError& error) = 0;
};

class Reply {
 public:
  // All must outlive it.
  Reply(const ServedModel& model, const Ask& ask, http::Exchange& exchange);
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // The answer with this index, to the prompt `prompt` of the request.
  void open(size_t index, size_t prompt, uint64_t seed) { form_->open(index, prompt, seed); }
  void prompt(std::vector<RatedToken> tokens) { form_->prompt(std::move(tokens)); }
  void token(AnswerState& state, RatedToken token);
  void pooled(std::span<const float> values) { form_->pooled(values); }
  void close(AnswerState& state, const std::optional<ReceiptDocument>& receipt) {
    form_->close(state, receipt);
  }
  void finish();
  void fail(const ApiError& error);

 private:
  double seconds() const;
  // Counted before the client can know of the end, and once.
  void count_end();

  const Ask& ask_;
  bool has_token_ = false, is_over_ = false;
  std::unique_ptr<ReplyForm> form_;
};

}  // namespace ostro::serve
