// RunningAnswer: an answer on its way through the model's rows: which tokens go next, and what is made of the
// logits that come back.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ostro/infer/row_mean.h"
#include "ostro/infer/row_runner.h"
#include "ostro/serve/model/answer.h"

namespace ostro::serve {

// It owns a sequence of the runner while it is open. Not thread-safe; the model must outlive it.
class RunningAnswer {
 public:
  // Error: the prompt does not fit.
  static Result<RunningAnswer> create(ServedModel& model, std::vector<int32_t> prompt,
                                      const AnswerOptions& options, const RatingOptions& rating);
  // One to the same prompt, which has not run; the stop strings of `options` are the same.
  RunningAnswer again(const AnswerOptions& options) const {
    return RunningAnswer(*model_, state_.again(options), rating_);
  }
  RunningAnswer(RunningAnswer&& other) noexcept;
  RunningAnswer& operator=(RunningAnswer&&) = delete;
  ~RunningAnswer() { close(); }

  // Its place among all answers of the thread, by when they first began; -1: it has not begun. It keeps its
  // number when it is paused.
  int64_t number() const { return number_; }
  void set_number(int64_t number) { number_ = number; }
  // Takes a sequence. With `like`, an open answer to the same prompt that has fed all of it, the prompt's
  // rows are copied. Otherwise rows are taken that are kept of earlier texts of this owner.
  Status open(const RunningAnswer* like = nullptr, const std::string& owner = "");
  void close();
  // Gives up the sequence; the answer can be opened again, and then goes on as if nothing had been.
  void pause();
  // Tokens that it had not to run since it was opened, from earlier texts.
  int64_t reused() const { return reused_; }
  bool is_open() const { return sequence_ >= 0; }

  // Tokens that are to go through the model; none: it is over.
  size_t unfed() const { return is_over() ? 0 : tokens_.size() - fed_; }
  bool has_fed_prompt() const { return fed_ >= state_.prompt().size(); }
  bool is_over() const {
    const bool runs_prompt = rating_.prompt || rating_.pooling != Pooling::kNone;
    return state_.finish() != Finish::kNone && (!runs_prompt || has_fed_prompt());
  }
  // Whether it can end with what it has: it has a token, and what is asked of its prompt is known.
  bool can_be_cut() const { return !made_.empty() && (!rating_.prompt || has_fed_prompt()); }
  // It is over; it has to be one that can be cut.
  void cut() { state_.cut(); }
  // The next `count` of them. Valid until rows come.
  infer::RowChunk chunk(size_t count);
  // What the rows of a chunk say: of the prompt's tokens, if it is rated, and which token is next.
  struct Reading {
    std::vector<RatedToken> prompt = {};
    std::optional<RatedToken> next = {};
  };
  // Of the wanted logits of that chunk, [row, vocab]. Answers can be read at the same time.
  Reading read(const infer::RowChunk& chunk, std::span<const float> rows, size_t vocab) const;
  // Goes on with what was read; the chunk's rows behind the final norm lie here.
  Status take(const infer::RowChunk& chunk, Reading reading);

  const AnswerState& state() const { return state_; }
  // What is known so far of the prompt's tokens, if it is rated, and of those that were made.
  const std::vector<RatedToken>& prompt_facts() const { return prompt_facts_; }
  const std::vector<RatedToken>& made() const { return made_; }
  // The embedding; empty as long as the prompt runs, and of other answers.
  const std::vector<float>& pooled() const { return pooled_; }

 private:
  void pool(const infer::RowChunk& chunk);
  RunningAnswer(ServedModel& model, AnswerState state, const RatingOptions& rating);

  ServedModel* model_;
  AnswerState state_;
  RatingOptions rating_;
  std::vector<int32_t> tokens_;  // the prompt's, then those made
  size_t fed_ = 0;
  int64_t sequence_ = -1, reused_ = 0, number_ = -1;
  std::vector<RatedToken> prompt_facts_, made_;
  std::vector<float> normed_;  // rows that came last
  infer::RowMean mean_;
  std::vector<float> pooled_;
};

}  // namespace ostro::serve
