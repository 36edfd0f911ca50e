#include "ostro/serve/running_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ostro/base/sha256.h"

namespace ostro::serve {
namespace {

// 53 bits, so that every program that reads JSON keeps them.
uint64_t drawn_seed() {
  const Nonce nonce = new_nonce();
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof out; ++i) out = out << 8 | static_cast<unsigned char>(nonce[i]);
  return out >> 11;
}

ApiError of_model(const Error& error) {
  return {error.code() == ErrorCode::kInvalidArgument ? kBadRequest : kServerError, error.message()};
}

}  // namespace

RunningRequest::RunningRequest(ServedModel& model, ReceiptMaker& receipts, Job job)
    : model_(model), receipts_(receipts), job_(std::move(job)), reply_(model, *job_.ask, *job_.exchange) {
  if (const Status begun = begin(); !begun.ok()) fail(of_model(begun.error()));
}

Status RunningRequest::begin() {
  const Ask& ask = *job_.ask;
  const uint64_t drawn = ask.seed.value_or(drawn_seed());
  for (size_t p = 0; p < ask.prompts.size(); ++p)
    for (int64_t c = 0; c < ask.count; ++c) {
      AnswerOptions options = ask.options;
      options.choice.choice = c;
      options.choice.seed = ask.nonce.empty()
                                ? drawn
                                : nonce_seed(ask.nonce, model_.facts.parameters(), ask.prompts[p], options);
      RatingOptions rating = ask.rating;
      rating.log_probs = rating.log_probs || ask.receipt;
      if (c > 0) {  // the prompt is decoded once
        RunningAnswer run = answers_.back().run.again(options);
        answers_.push_back({std::move(run), std::move(options), p});
        continue;
      }
      ASSIGN_OR_RETURN(RunningAnswer run, RunningAnswer::create(model_, ask.prompts[p], options, rating));
      answers_.push_back({std::move(run), std::move(options), p});
    }
  return {};
}

size_t RunningRequest::waiting() const {
  for (size_t i = turn_; i < next_; ++i)
    if (!answers_[i].run.is_open() && answers_[i].run.unfed() > 0) return i;
  return next_;
}

const RunningAnswer* RunningRequest::first_of(size_t which) const {
  const auto before = static_cast<size_t>(answers_[which].options.choice.choice);
  const RunningAnswer& first = answers_[which - before].run;
  return before > 0 && first.is_open() ? &first : nullptr;
}

bool RunningRequest::can_open() const {
  if (!has_waiting()) return false;
  const RunningAnswer* first = first_of(waiting());
  return first == nullptr || first->has_fed_prompt();
}

void RunningRequest::open_next(Clock::time_point now, int64_t& begun) {
  const size_t which = waiting();
  Answer& answer = answers_[which];
  if (!begun_) begun_ = now;
  if (answer.run.unfed() > 0) {
    if (answer.run.number() < 0) answer.run.set_number(begun++);
    if (const Status opened = answer.run.open(first_of(which), job_.ask->owner); !opened.ok())
      return fail(of_model(opened.error()));
    if (job_.ask->metrics != nullptr && which == next_) job_.ask->metrics->reuse(answer.run.reused());
  }
  if (which == next_) ++next_;
}

// An answer without a token would look like one that has nothing to say, so the request then gets an error.
void RunningRequest::keep(const TimeLimits& limits, Clock::time_point now) {
  if (over_) return;
  if (!begun_ && now - job_.ask->arrived > limits.waiting) return fail(waited_too_long(limits.waiting));
  if (!begun_ || now - *begun_ <= limits.running) return;
  for (size_t i = turn_; i < answers_.size(); ++i)
    if (const RunningAnswer& run = answers_[i].run; !run.is_over() && !run.can_be_cut())
      return fail(ran_too_long(limits.running, i, answers_.size()));
  for (size_t i = turn_; i < answers_.size(); ++i) answers_[i].run.cut();
}

void RunningRequest::pause(RunningAnswer& answer) {
  answer.pause();
  if (job_.ask->metrics != nullptr) job_.ask->metrics->preempt();
}

int64_t RunningRequest::open_answers() const {
  return std::count_if(answers_.begin(), answers_.end(), [](const Answer& a) { return a.run.is_open(); });
}

std::vector<RunningAnswer*> RunningRequest::running() {
  std::vector<RunningAnswer*> out;
  if (!over_)
    for (size_t i = turn_; i < next_; ++i)
      if (answers_[i].run.is_open()) out.push_back(&answers_[i].run);
  return out;
}

bool RunningRequest::close_finished() {
  bool out = false;
  for (size_t i = turn_; i < next_ && !over_; ++i) {
    RunningAnswer& run = answers_[i].run;
    if (!run.is_over()) continue;
    out = out || run.is_open();
    run.close();
  }
  return out;
}

void RunningRequest::tell() {
  while (!over_ && turn_ < next_ && !is_held()) {
    const size_t before = turn_;
    if (const Status told = tell_next(); !told.ok()) fail(of_model(told.error()));
    if (turn_ == before) return;
  }
  if (over_ || turn_ < answers_.size()) return;
  reply_.finish();
  over_ = true;
}

// The state follows the tokens once more: an answer runs ahead of its turn.
Status RunningRequest::tell_next() {
  Answer& answer = answers_[turn_];
  const RunningAnswer& run = answer.run;
  if (!told_) {
    reply_.open(turn_, answer.prompt, answer.options.choice.seed);
    told_ = Told{run.state().again(answer.options)};
  }
  Told& told = *told_;
  if (job_.ask->rating.prompt && !told.prompt) {
    if (!run.has_fed_prompt()) return {};
    reply_.prompt(run.prompt_facts());
    told.prompt = true;
  }
  for (; told.tokens < run.made().size(); ++told.tokens) {
    if (is_held()) return {};
    const RatedToken& token = run.made()[told.tokens];
    told.log_probs.push_back(token.log_prob);
    RETURN_IF_ERROR(told.state.add(token.id));
    reply_.token(told.state, token);
  }
  if (!run.is_over()) return {};
  if (run.state().finish() == Finish::kTime) told.state.cut();
  if (job_.ask->form == Form::kEmbedding) {
    const bool finite =
        std::all_of(run.pooled().begin(), run.pooled().end(), [](float x) { return std::isfinite(x); });
    if (!finite) {
      fail({kServerError, fmt::format("the embedding of input {} is not finite", answer.prompt)});
      return {};
    }
    reply_.pooled(run.pooled());
  }
  std::optional<ReceiptDocument> receipt;
  if (job_.ask->receipt) {
    auto written = receipts_.make(model_, told.state, answer.options, job_.ask->nonce, told.log_probs);
    if (!written.ok()) {
      fail({kUnavailable, "no receipt can be kept now: " + written.error().message()});
      return {};
    }
    receipt = std::move(*written);
  }
  reply_.close(told.state, receipt);
  told_.reset();
  ++turn_;
  return {};
}

void RunningRequest::fail(const ApiError& error) {
  if (std::exchange(over_, true)) return;
  reply_.fail(error);
  for (Answer& answer : answers_) answer.run.close();
}

}  // namespace ostro::serve
