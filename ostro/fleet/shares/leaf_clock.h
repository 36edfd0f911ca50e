// LeafClock, SecondsOf, LeafTimes: how long the leaves of a step take on each worker, without the exchanges
// that go on beside them (SliceOverlap), and without its waiting for these. Workers that compute a leaf
// together wait for each other within it; that is a part of its time, so all of them take as long as the
// slowest.
//
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

// From construction to destruction: adds its seconds to a number.
class SecondsOf {
 public:
  explicit SecondsOf(double& to) : to_(to) {}
  ~SecondsOf() { to_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  SecondsOf(const SecondsOf&) = delete;
  SecondsOf& operator=(const SecondsOf&) = delete;

 private:
  double& to_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Begins with the first leaf of a step of worker `rank`. `aside`: the seconds since then in which this worker
// did exchanges, or waited for them, in place of computing leaves.
class LeafClock {
 public:
  LeafClock(int64_t step, int64_t rank);

  // A leaf was started; `loss` is one of its results. Waits for nothing, unless leaves are slow on purpose.
  Status started(const runtime::Buffer& loss, double aside);
  // Waits until the leaves are computed, of which `loss` is a result of the last. Returns the seconds of a
  // leaf, in the mean.
  Result<double> ended(const runtime::Buffer& loss, double aside);

 private:
  const int64_t step_, rank_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point leaf_;  // when the present leaf began
  double aside_ = 0;                            // until then
  int64_t leaves_ = 0;
  double simulated_ = 0;  // seconds of all leaves, if they are slow on purpose
};

}  // namespace ostro::fleet
