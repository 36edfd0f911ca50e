// EngineThread: the one thread that runs the model, or models that share its rows: a scheduler of many
// requests. Each step of the model takes the next token of every answer that is being made, then pieces of
// prompts in the order in which their answers began, as many rows as keep a step short; where padding would
// cost more than another step, it is cut at a power of two (StepBudget). Keys take turns at the sequences
// that become free (KeyTurns), and each has at most its share of them. A client that has left is dropped,
// while it waits and between steps. Where memory of keys and values runs out, the answer that began last is
// put back and run again later. What waits or runs for longer than it may is ended between steps
// (TimeLimits).
//
// A request for embeddings may have thousands of texts. It has one at a time while others wait, and stands
// behind all of these of its key when that is done; where nothing waits it has as many as fill a step. Those
// that have texts left count as waiting: beyond the share of their key, others stay in the queue.
//
// What an answer is does not depend on any of this (numerics.md N16).
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "ostro/http/exchange.h"
#include "ostro/infer/step_budget.h"
#include "ostro/serve/ask.h"
#include "ostro/serve/limits.h"
#include "ostro/serve/receipts/receipt_log.h"
#include "ostro/serve/running_answer.h"

namespace ostro::serve {

struct Job {
  std::shared_ptr<http::Exchange> exchange;
  std::shared_ptr<const Ask> ask;
  std::shared_ptr<void> held;    // released when the job is over, however it ends
  std::string key = {};          // whose share it takes; "": all requests are of one owner
  ServedModel* model = nullptr;  // that it asks, of those whose rows the thread runs; null: the thread's own
};

struct EngineLimits {
  size_t waiting = 64;         // requests at most
  double step_seconds = 0.05;  // a step with pieces of prompts takes no longer, if it can be
  std::shared_ptr<Metrics> metrics = {};
  double key_share = 75;  // percent of what may wait, and of the answers that run, for one key
  TimeLimits times = {};
  std::function<Clock::time_point()> now = Clock::now;  // a test has its own
};

class RunningRequest;

class EngineThread {
 public:
  // The model, all that share its rows (ServedModel::rows), and the maker must outlive it. The model's runner
  // says how many answers run at a time.
  EngineThread(ServedModel& model, ReceiptMaker& receipts, const EngineLimits& limits);
  // Ends the requests that run and those that wait, with an error.
  ~EngineThread();

  // Why a request may not wait, since so many do already; nothing: it waits.
  std::optional<ApiError> push(Job job);

 private:
  void run();
  // Opens answers as long as one can run; waits for a request if nothing runs. False: the thread ends.
  bool admit();
  // The keys for which something waits: answers of requests that were taken, then requests of the queue.
  std::vector<std::string> waiting_keys() const;
  // Opens an answer of the first key in turn that has one which can run. Returns false if none has. Of a key,
  // answers of requests that were taken come before a request of the queue.
  bool open_one();
  // Opens further texts of embeddings, where nothing else waits.
  void fill_step();
  // Whether this key has its share of what may wait in requests for embeddings that were taken. Another one
  // of it then stays in the queue.
  bool has_its_embeddings(const std::string& key) const;
  // Null: its client has left.
  RunningRequest* take(Job job);
  // Ends what waits or runs for longer than it may.
  void keep_time_limits();
  // Closes answers that are over. A request whose turn is over goes behind the others.
  void close_finished();
  void step();
  // An answer with the tokens that it feeds in a step.
  struct Part {
    RunningRequest* request;
    RunningAnswer* answer;
    infer::RowChunk chunk;
  };
  std::vector<Part> next_parts();
  // The parts of the next step. While there is too little memory for them, the answer that began last gives
  // its own up; it is run again when there is room.
  std::vector<Part> parts_with_room();
  std::vector<RunningAnswer::Reading> read(const std::vector<Part>& parts, const runtime::Buffer& made) const;
  // Drops what has left, and removes what is over.
  void clear();
  void fail_all(const ApiError& error);
  void count_pages();  // for the metrics
  // For an answer of this key.
  bool has_free_sequence(const std::string& key) const;
  // Whether there is memory for the next answer of the request, beside what those that run have to feed.
  bool has_room(const RunningRequest& request);

  ServedModel& model_;
  ReceiptMaker& receipts_;
  const EngineLimits limits_;
  infer::StepBudget budget_;
  const int threads_;
  const std::shared_ptr<Metrics> metrics_;
  std::atomic<bool> stops_ = false;
  KeyQueue<Job> queue_;
  KeyTurns turns_;
  int64_t begun_ = 0;  // answers; each has its number of these
  // In the order in which they were taken; those for embeddings in that of their turns.
  std::list<RunningRequest> requests_;
  std::thread thread_;
};

}  // namespace ostro::serve
