// LeafClock, LeafTimes: how long the leaves of a step take on each worker, without its waiting for others.
// OSTRO_SIM_SLOW makes leaves slow on purpose (base/watch/slow_leaf.h). Errors: those of the engine. Not
// thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "ostro/runtime/buffer.h"

namespace ostro::fleet {

// Seconds for a leaf in one step. 0: the worker had no leaf, or times were not taken.
struct LeafTimes {
  double own = 0;
  std::vector<double> all;  // by place; empty: workers do not tell each other
};

// Begins with the first leaf of a step of worker `rank`. `alone`: it computes a leaf by itself. Then its
// waiting for others is no time of its leaves; workers that compute a leaf together all take as long as the
// slowest of them.
class LeafClock {
 public:
  LeafClock(int64_t step, int64_t rank, bool alone);

  // A leaf was started; `loss` is one of its results. Waits for nothing, unless leaves are slow on purpose.
  Status started(const runtime::Buffer& loss);
  // Waits until the leaves are computed, of which `loss` is a result of the last. Returns the seconds of a
  // leaf, in the mean.
  Result<double> ended(const runtime::Buffer& loss);

 private:
  const int64_t step_, rank_;
  const bool alone_;
  const double waited_;  // before it began
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point leaf_;  // when the present leaf began
  int64_t leaves_ = 0;
  double simulated_ = 0;  // seconds of all leaves, if they are slow on purpose
};

}  // namespace ostro::fleet
