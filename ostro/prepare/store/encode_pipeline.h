// EncodePipeline: encodes the units of a build with several threads and gives the results in order.
//
// One thread reads units, `threads` others encode them. It holds a bounded number of units. Errors come in
// the order of the units.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/prepare/store/documents.h"

namespace ostro::prepare {

// next() is called by one thread only. The arguments must outlive the object.
class EncodePipeline final : public UnitSource {
 public:
  EncodePipeline(const EncodeContext& context, const tokenizer::Tokenizer& tokenizer, DocumentReader reader,
                 int threads);
  ~EncodePipeline() override;  // drops results that were not taken

  // Waits for the next unit. An error in a file is given after all units of earlier files.
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
  const size_t window_;  // units read but not yet taken, at most

  std::mutex mutex_;  // guards what follows
  std::condition_variable room_changed_, work_changed_, job_done_;
  std::deque<std::shared_ptr<Job>> jobs_;     // oldest first; next() takes the front one when it is done
  std::deque<std::shared_ptr<Job>> waiting_;  // the jobs among them that no thread encodes yet
  int64_t bytes_ = 0;                         // bytes of jobs_ plus those of the unit taken last ...
  int64_t taken_ = 0;                         // ... which the caller holds until it calls next() again
  bool ended_ = false;                        // the reading thread has finished ...
  Status reading_;                            // ... and with this error, if it failed
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ostro::prepare
