#include "ostro/serve/reply.h"

#include <utility>

#include "ostro/serve/reply_choices.h"
#include "ostro/serve/reply_embedding.h"
#include "ostro/serve/reply_response.h"

namespace ostro::serve {

Reply::Reply(const ServedModel& model, const Ask& ask, http::Exchange& exchange) : ask_(ask) {
  if (ask.form == Form::kResponse)
    form_ = std::make_unique<ResponseReply>(model, ask, exchange);
  else if (ask.form == Form::kEmbedding)
    form_ = std::make_unique<EmbeddingReply>(model, ask, exchange);
  else
    form_ = std::make_unique<ChoicesReply>(model, ask, exchange);
  int64_t tokens = 0;
  for (const auto& prompt : ask.prompts) tokens += static_cast<int64_t>(prompt.size());
  if (ask_.metrics != nullptr) ask_.metrics->begin(tokens);
}

Reply::~Reply() { count_end(); }

void Reply::count_end() {
  if (!std::exchange(is_over_, true) && ask_.metrics != nullptr) ask_.metrics->end(seconds());
}

void Reply::finish() {
  count_end();
  form_->finish();
}

void Reply::fail(const ApiError& error) {
  count_end();
  form_->fail(error);
}

double Reply::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - ask_.arrived).count();
}

void Reply::token(AnswerState& state, RatedToken token) {
  const bool is_first = !std::exchange(has_token_, true);
  if (ask_.metrics != nullptr) ask_.metrics->token(seconds(), is_first);
  form_->token(state, std::move(token));
}

}  // namespace ostro::serve
