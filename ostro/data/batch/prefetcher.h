// Makes the batches of the next steps while this one is computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ostro/data/batch/loader.h"

namespace ostro::data {

// One thread that calls `make` for first, first + 1, ... and keeps at most `depth` results. The order of
// batches and errors is that of the steps, whatever the timing. next() is called by one thread.
class Prefetcher {
 public:
  // `memory`: a batch that was given back, or an empty one.
  using Make = std::function<Result<Batch>(int64_t step, Batch memory)>;

  // `make` runs in the thread and must be safe to call there until the destructor returns.
  Prefetcher(Make make, int64_t first_step, size_t depth = 2);
  // Stops without making further batches; waits for the one in progress.
  ~Prefetcher();

  // The batch of the next step, waiting for it when it is not ready. An error is that step's, and final: it
  // is given again by every later call. `done`: a batch that is no longer needed; later ones use its memory.
  Result<Batch> next(Batch done = {});

  // Seconds that next() has waited so far: how much the data holds the training back.
  double seconds_waited() const { return seconds_waited_; }

 private:
  void work();
  Batch take_spare();

  Make make_;
  int64_t step_;
  size_t depth_;
  double seconds_waited_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Result<Batch>> ready_;  // an error is the last element and stays
  std::vector<Batch> spares_;        // given back; all batches together are at most depth + 2
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ostro::data
