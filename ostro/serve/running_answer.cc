#include "ostro/serve/running_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ostro::serve {

RunningAnswer::RunningAnswer(ServedModel& model, AnswerState state, const RatingOptions& rating)
    : model_(&model), state_(std::move(state)), rating_(rating), tokens_(state_.prompt()) {
  if (rating.prompt) prompt_facts_.push_back({tokens_[0]});
}

RunningAnswer::RunningAnswer(RunningAnswer&& other) noexcept
    : model_(other.model_),
      state_(std::move(other.state_)),
      rating_(other.rating_),
      tokens_(std::move(other.tokens_)),
      fed_(other.fed_),
      sequence_(std::exchange(other.sequence_, -1)),
      reused_(other.reused_),
      number_(other.number_),
      prompt_facts_(std::move(other.prompt_facts_)),
      made_(std::move(other.made_)),
      normed_(std::move(other.normed_)),
      mean_(std::move(other.mean_)),
      pooled_(std::move(other.pooled_)) {}

Result<RunningAnswer> RunningAnswer::create(ServedModel& model, std::vector<int32_t> prompt,
                                            const AnswerOptions& options, const RatingOptions& rating) {
  if (prompt.empty()) return invalid_argument("the prompt is empty; give at least one token");
  if (static_cast<int64_t>(prompt.size()) > model.runner->limits().positions)
    return invalid_argument(fmt::format("the prompt has {} tokens, the model's context is {}", prompt.size(),
                                        model.runner->limits().positions));
  ASSIGN_OR_RETURN(AnswerState state, AnswerState::create(model, std::move(prompt), options));
  return RunningAnswer(model, std::move(state), rating);
}

// The last row is run again, for what is wanted of it. Where all rows are needed all are run. Those of a mean
// are not kept: texts that are embedded seldom come again, and are many.
Status RunningAnswer::open(const RunningAnswer* like, const std::string& owner) {
  infer::RowRunner& runner = *model_->runner;
  ASSIGN_OR_RETURN(sequence_, runner.open());
  const size_t prompt = state_.prompt().size();
  reused_ = 0;
  if (like != nullptr && !rating_.prompt && prompt > 1) {
    fed_ = prompt - 1;
    return runner.copy(like->sequence_, sequence_, static_cast<int64_t>(fed_));
  }
  if (rating_.pooling == Pooling::kMean) return {};
  const size_t most = rating_.prompt ? 0 : tokens_.size() - 1;
  reused_ = runner.reuse(sequence_, std::span(tokens_).first(most), owner);
  fed_ = static_cast<size_t>(reused_);
  return {};
}

void RunningAnswer::pause() {
  close();
  fed_ = 0;
  if (rating_.prompt) prompt_facts_.resize(1);
  mean_ = {};
}

void RunningAnswer::close() {
  if (is_open()) model_->runner->close(std::exchange(sequence_, -1));
}

// The last row, or all of the prompt.
infer::RowChunk RunningAnswer::chunk(size_t count) {
  const bool all = rating_.needs_all_rows() && !has_fed_prompt();
  const bool last = fed_ + count == tokens_.size();
  return {sequence_, std::span(tokens_).subspan(fed_, count),
          all ? static_cast<int64_t>(count) : static_cast<int64_t>(last),
          rating_.pooling == Pooling::kNone ? nullptr : &normed_};
}

void RunningAnswer::pool(const infer::RowChunk& chunk) {
  fed_ += chunk.tokens.size();
  if (rating_.pooling == Pooling::kMean) {
    mean_.add(normed_, normed_.size() / chunk.tokens.size());
    if (has_fed_prompt()) pooled_ = mean_.mean();
  } else if (has_fed_prompt()) {
    pooled_ = normed_;
  }
  normed_.clear();
  if (!has_fed_prompt()) return;
  std::vector<float>().swap(normed_);  // the answers of a request may be many, and end together
  mean_ = {};
}

RunningAnswer::Reading RunningAnswer::read(const infer::RowChunk& chunk, std::span<const float> rows,
                                           size_t vocab) const {
  Reading out;
  if (rating_.pooling != Pooling::kNone) return out;
  if (rating_.prompt && !has_fed_prompt())
    for (size_t i = 0; i < chunk.tokens.size() && fed_ + i + 1 < state_.prompt().size(); ++i)
      out.prompt.push_back(
          rated(*model_, rows.subspan(i * vocab, vocab), state_.prompt()[fed_ + i + 1], rating_));
  if (fed_ + chunk.tokens.size() < tokens_.size() || state_.finish() != Finish::kNone) return out;
  const auto row = rows.last(vocab);
  out.next = rated(*model_, row, state_.choose(row), rating_);
  return out;
}

Status RunningAnswer::take(const infer::RowChunk& chunk, Reading reading) {
  if (rating_.pooling != Pooling::kNone) {
    pool(chunk);
    return {};
  }
  std::move(reading.prompt.begin(), reading.prompt.end(), std::back_inserter(prompt_facts_));
  fed_ += chunk.tokens.size();
  if (!reading.next) return {};
  const int32_t token = reading.next->id;
  made_.push_back(std::move(*reading.next));
  tokens_.push_back(token);
  return state_.add(token);
}

}  // namespace ostro::serve
