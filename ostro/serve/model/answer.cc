#include "ostro/serve/model/answer.h"

#include <algorithm>

#include "ostro/infer/log_probs.h"

namespace ostro::serve {

const char* finish_word(Finish finish) {
  switch (finish) {
    case Finish::kNone: return "";
    case Finish::kStopToken: return "stop_token";
    case Finish::kStopString: return "stop_string";
    case Finish::kLength: return "length";
    case Finish::kTime: return "time_limit";
  }
  return "";
}

AnswerState::AnswerState(const ServedModel& model, std::vector<int32_t> prompt, AnswerOptions options,
                         TextStream text)
    : model_(&model),
      prompt_(std::move(prompt)),
      options_(std::move(options)),
      text_(std::move(text)),
      start_(text_) {
  if (is_full()) finish_ = Finish::kLength;
}

Result<AnswerState> AnswerState::create(const ServedModel& model, std::vector<int32_t> prompt,
                                        const AnswerOptions& options) {
  ASSIGN_OR_RETURN(TextStream text, TextStream::create(*model.tokenizer, prompt, options.stop));
  return AnswerState(model, std::move(prompt), options, std::move(text));
}

AnswerState AnswerState::again(const AnswerOptions& options) const {
  return AnswerState(*model_, prompt_, options, start_);
}

bool AnswerState::is_full() const {
  return static_cast<int64_t>(made_.size()) >= options_.max_tokens ||
         static_cast<int64_t>(prompt_.size() + made_.size()) >= model_->facts.context;
}

bool AnswerState::is_special_stop(int32_t token) const {
  const auto& added = model_->tokenizer->spec().added_tokens;
  return std::any_of(added.begin(), added.end(), [&](const tokenizer::AddedToken& one) {
    return one.special && static_cast<int32_t>(one.id) == token &&
           std::find(options_.stop.begin(), options_.stop.end(), one.content) != options_.stop.end();
  });
}

int32_t AnswerState::choose(std::span<const float> logits) const {
  const auto known = static_cast<size_t>(model_->tokens());
  return infer::choose(logits.first(std::min(known, logits.size())), options_.choice, made_,
                       static_cast<int64_t>(prompt_.size() + made_.size()));
}

// The text of a token that ends the answer is no part of it.
Status AnswerState::add(int32_t token) {
  made_.push_back(token);
  if (std::find(model_->stops.begin(), model_->stops.end(), token) != model_->stops.end()) {
    finish_ = Finish::kStopToken;
  } else if (is_special_stop(token)) {
    finish_ = Finish::kStopString;
  } else {
    RETURN_IF_ERROR(text_.add(token));
    if (text_.is_stopped())
      finish_ = Finish::kStopString;
    else if (is_full())
      finish_ = Finish::kLength;
  }
  if (finish_ != Finish::kNone) text_.finish();
  return {};
}

void AnswerState::cut() {
  if (finish_ != Finish::kNone) return;
  finish_ = Finish::kTime;
  text_.finish();
}

RatedToken rated(const ServedModel& model, std::span<const float> logits, int32_t token,
                 const RatingOptions& rating) {
  RatedToken out{token};
  if (!rating.log_probs) return out;
  const infer::LogProbs probs(logits, model.vocab_leaves);
  out.log_prob = probs.of(token);
  if (rating.likely > 0)
    for (const int32_t id : probs.most_likely(rating.likely, model.tokens()))
      out.likely.emplace_back(id, probs.of(id));
  return out;
}

}  // namespace ostro::serve
