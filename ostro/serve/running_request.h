// RunningRequest: the answers of one request, which run together and are told one after the other.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "ostro/serve/engine_thread.h"
#include "ostro/serve/reply.h"
#include "ostro/serve/running_answer.h"

namespace ostro::serve {

// Used by one thread. The model and the maker must outlive it.
class RunningRequest {
 public:
  RunningRequest(ServedModel& model, ReceiptMaker& receipts, Job job);
  RunningRequest(const RunningRequest&) = delete;
  RunningRequest& operator=(const RunningRequest&) = delete;

  bool is_over() const { return over_; }
  bool is_gone() const { return job_.exchange->is_gone(); }
  // True: an answer waits for a sequence.
  bool has_waiting() const { return !over_ && waiting() < answers_.size(); }
  // Tokens of the answer that open_next() would open.
  int64_t waiting_tokens() const { return static_cast<int64_t>(answers_[waiting()].run.unfed()); }
  // Whether open_next() may be called. Of one prompt, an answer after the first waits until that has fed the
  // prompt, and copies its rows.
  bool can_open() const;
  // Opens the next answer. The first one begins the request. An answer that begins gets the number `begun`,
  // which then grows.
  void open_next(Clock::time_point now, int64_t& begun);
  int64_t open_answers() const;
  // Whose share it takes.
  const std::string& key() const { return job_.key; }
  // Ends it where it has waited or run for too long: with an error, or with what its answers have.
  void keep(const TimeLimits& limits, Clock::time_point now);
  // Of a request for embeddings: it runs text by text, in turn with others.
  bool takes_turns() const { return job_.ask->form == Form::kEmbedding; }
  // Whether an answer of it waits, and a text of embeddings has its turn.
  bool has_turn() const { return (!takes_turns() || (open_answers() == 0 && ahead() == 0)) && has_waiting(); }
  // Requests of its key, in the queue, that come before its next text.
  size_t ahead() const { return ahead_; }
  void set_ahead(size_t requests) { ahead_ = requests; }
  // Whether its client reads more slowly than the answer is made; what is new then waits.
  bool is_held() const { return !over_ && job_.exchange->is_full(); }
  // Takes the sequence of an answer that runs; it waits again.
  void pause(RunningAnswer& answer);
  // Those that run, in order.
  std::vector<RunningAnswer*> running();
  // Closes the answers that are over. Returns whether there were some.
  bool close_finished();
  // Sends what is new, in the order of the answers. The last ends the request.
  void tell();
  void fail(const ApiError& error);

 private:
  struct Answer {
    RunningAnswer run;
    AnswerOptions options;
    size_t prompt = 0;
  };
  // What was told of the answer whose turn it is: a state of its own, which is behind that of the model.
  struct Told {
    AnswerState state;
    bool prompt = false;
    size_t tokens = 0;
    std::vector<float> log_probs = {};
  };

  Status begin();
  // The first answer that has not run or was paused.
  size_t waiting() const;
  Status tell_next();
  // The answer that the one at `which` copies its prompt's rows of; null: none.
  const RunningAnswer* first_of(size_t which) const;

  ServedModel& model_;
  ReceiptMaker& receipts_;
  Job job_;
  Reply reply_;
  std::deque<Answer> answers_;
  size_t next_ = 0;  // the first that was not opened
  size_t turn_ = 0;  // the first that is not told to its end
  std::optional<Told> told_;
  std::optional<Clock::time_point> begun_;
  size_t ahead_ = 0;
  bool over_ = false;
};

}  // namespace ostro::serve
