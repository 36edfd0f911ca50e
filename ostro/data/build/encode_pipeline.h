// Reads units in one thread, encodes them in several and hands the results out in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/data/build/documents.h"

namespace ostro::data {

// next() is called by one thread. Refers to its arguments.
class EncodePipeline final : public UnitSource {
 public:
  EncodePipeline(const EncodeContext& context, const tokenizer::Tokenizer& tokenizer, DocumentReader reader,
                 int threads);
  ~EncodePipeline() override;  // drops what was not taken

  // Waits for the next unit. An error in a file comes after the units of files before it.
  Result<bool> next(EncodedUnit& unit) override;

 private:
  struct Job {
    Unit unit;
    int64_t bytes = 0;
    Result<EncodedUnit> result = EncodedUnit{};
    bool done = false;
  };
  void read(DocumentReader reader);
  void encode();

  const EncodeContext& context_;
  const tokenizer::Tokenizer& tokenizer_;
  const size_t window_;  // units on their way

  std::mutex mutex_;  // guards what follows
  std::condition_variable room_changed_, work_changed_, job_done_;
  std::deque<std::shared_ptr<Job>> jobs_;     // oldest first; taken from the front when done
  std::deque<std::shared_ptr<Job>> waiting_;  // those of them that nobody encodes yet
  int64_t bytes_ = 0;                         // of jobs_ and of the unit taken last ...
  int64_t taken_ = 0;                         // ... which the caller has until it asks for another
  bool ended_ = false;                        // nothing more is read ...
  Status reading_;                            // ... because of this, when it is an error
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ostro::data
