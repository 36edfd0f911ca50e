// Prefetcher: makes the batches of the next steps while the current step is computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/batches/loader/loader.h"

namespace ostro::batches {

// A background thread calls `make` for steps first, first + 1, ... and keeps at most `depth` finished
// results. Batches and errors come in the order of the steps, for any timing. next() is called by one thread
// only.
class Prefetcher {
 public:
  // `memory` is a batch that the caller gave back, for reuse, or an empty one.
  using Make = std::function<Result<Batch>(int64_t step, Batch memory)>;

  // `make` runs in the background thread until the destructor returns.
  Prefetcher(Make make, int64_t first_step, size_t depth = 2);
  // Makes no further batch, and waits for the one in progress.
  ~Prefetcher();

  // The batch of the next step. Waits when it is not ready. An error is final: every later call gives it
  // again. `done` is a batch that the caller no longer needs; its memory is used for a later one.
  Result<Batch> next(Batch done = {});

 private:
  void work();
  Batch take_spare();

  Make make_;
  int64_t step_;
  size_t depth_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Result<Batch>> ready_;  // an error is the last element and stays
  std::vector<Batch> spares_;        // given back; all batches together are at most depth + 2
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ostro::batches
