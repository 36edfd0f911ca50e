// AnswerState: how far an answer is, and why it ends: a function of its tokens. rated: what the model thought
// of a token.
//
// Both depend on the model, the prompt and the options alone; the check of a receipt uses the same state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/infer/choose.h"
#include "ostro/serve/model/served_model.h"
#include "ostro/serve/text/text_stream.h"

namespace ostro::serve {

// What decides an answer, beside the model and the prompt.
struct AnswerOptions {
  infer::ChoiceOptions choice;
  int64_t max_tokens = 16;
  std::vector<std::string> stop;
};

// kTime: it was cut off where it was, since it ran for too long.
enum class Finish { kNone, kStopToken, kStopString, kLength, kTime };
// "stop_token", "stop_string", "length", "time_limit"; "" for an answer that goes on.
const char* finish_word(Finish finish);
// Whether more would have come.
inline bool is_cut(Finish finish) { return finish == Finish::kLength || finish == Finish::kTime; }
// What an answer says of kTime, for which OpenAI's API has no word: the option that sets the time.
inline constexpr const char* kEndedByTime = "running_seconds";

// Values; the model must outlive it.
class AnswerState {
 public:
  // Of an answer that may have no token, it is over at once.
  static Result<AnswerState> create(const ServedModel& model, std::vector<int32_t> prompt,
                                    const AnswerOptions& options);

  // The state of an answer to the same prompt, without tokens; the stop strings of `options` are the same.
  AnswerState again(const AnswerOptions& options) const;

  // The next token is one of this row's.
  int32_t choose(std::span<const float> logits) const;
  Status add(int32_t token);
  // An answer that goes on ends with the tokens that it has.
  void cut();

  Finish finish() const { return finish_; }
  const std::vector<int32_t>& prompt() const { return prompt_; }
  const std::vector<int32_t>& made() const { return made_; }
  TextStream& text() { return text_; }
  const TextStream& text() const { return text_; }

 private:
  AnswerState(const ServedModel& model, std::vector<int32_t> prompt, AnswerOptions options, TextStream text);
  bool is_full() const;
  // Special tokens have no text, so a stop string that names one ("<|im_end|>") is compared with its id.
  bool is_special_stop(int32_t token) const;

  const ServedModel* model_;
  std::vector<int32_t> prompt_, made_;
  AnswerOptions options_;
  TextStream text_, start_;  // start_: behind the prompt, which need not be decoded again
  Finish finish_ = Finish::kNone;
};

// A token with what the model thought of it.
struct RatedToken {
  int32_t id = 0;
  float log_prob = 0;
  std::vector<std::pair<int32_t, float>> likely = {};  // the most likely tokens at its place, descending
};

// What an embedding is made of: the row behind the final norm of the last token, or the mean of all rows.
enum class Pooling { kNone, kLast, kMean };

// What is to be known of the tokens besides.
struct RatingOptions {
  bool log_probs = false;
  int64_t likely = 0;                // how many of the most likely
  bool prompt = false;               // of the prompt's tokens, too
  Pooling pooling = Pooling::kNone;  // of the prompt, which is then all that runs

  // All rows of the prompt are needed, and none can be taken from earlier texts.
  bool needs_all_rows() const { return prompt || pooling == Pooling::kMean; }
};

// How likely a token is at a place with these logits.
RatedToken rated(const ServedModel& model, std::span<const float> logits, int32_t token,
                 const RatingOptions& rating);

}  // namespace ostro::serve
