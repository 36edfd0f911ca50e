// Encodes units in several threads and hands the results back in the order in which they were submitted.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/data/documents.h"

namespace ostro::data {

// submit() and take() are called by one thread. Refers to its arguments.
class EncodePipeline {
 public:
  EncodePipeline(const EncodeContext& context, const tokenizer::Tokenizer& tokenizer, int threads);
  ~EncodePipeline();  // drops what was not taken

  // Units submitted and not taken: the caller's bound on memory.
  size_t in_flight() const { return jobs_.size(); }
  void submit(Unit unit);
  // Waits for the oldest unit. There must be one.
  Result<EncodedUnit> take();

 private:
  struct Job {
    Unit unit;
    Result<EncodedUnit> result = EncodedUnit{};
    bool done = false;
  };
  void work();

  const EncodeContext& context_;
  const tokenizer::Tokenizer& tokenizer_;
  std::deque<std::shared_ptr<Job>> jobs_;  // the caller's, oldest first

  std::mutex mutex_;  // guards what follows, and `done`
  std::condition_variable work_changed_, job_done_;
  std::deque<std::shared_ptr<Job>> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ostro::data
