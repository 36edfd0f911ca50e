// ThreadPool: a fixed set of threads that run the tiles of one job at a time.
//
// Ownership: the pool owns its workers. The caller owns a job's function and all that it refers to; the
// caller runs tiles too, and its call returns when all tiles are done. Thread safety: calls from several
// threads take turns. A call from inside a job runs on the calling thread alone. Several pools may live in
// one process. Any thread may run any tile, so no result may depend on which one does.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/base/profile.h"
#include "ostro/machine/function_ref.h"

namespace ostro::machine {

class ThreadPool {
 public:
  // `threads` counts the caller: threads - 1 workers are started. At least 1. Worker i is bound to cpus[i %
  // cpus.size()]; with an empty list, to none. The pool does not bind the caller, because threads that the
  // caller starts would inherit the binding. To run it on cpus[0], bind it for a while (BoundThread).
  explicit ThreadPool(int threads, std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls fn(tile) once for every tile in [0, count), threads taking the next free tile in ascending order.
  // Every call sees round-to-nearest, FTZ and DAZ (MXCSR 0x9fc0). fn must not throw.
  void run_tiles(int64_t count, FunctionRef<void(int64_t tile)> fn);

  // Cuts [0, count) into at most threads() contiguous ranges of nearly equal length, none but the last
  // shorter than `grain`, and calls fn(begin, end) for each.
  void parallel_for(int64_t count, FunctionRef<void(int64_t begin, int64_t end)> fn, int64_t grain = 1);

 private:
  int64_t work();  // tiles done
  void serve(int number);

  const std::vector<int> cpus_;
  std::mutex callers_;  // one job at a time
  // The job: written while no worker is inside.
  const FunctionRef<void(int64_t)>* job_ = nullptr;
  int64_t count_ = 0;
  SpanPlace place_;  // the caller's when the job began; without a label when there is no profile
  alignas(64) std::atomic<int64_t> next_{0};
  // The number of workers inside the job, plus kClosed when the job is closed. A worker that wakes up after
  // the last tile was taken finds the job closed. So the caller never waits for a worker that the operating
  // system has not scheduled yet.
  alignas(64) std::atomic<uint32_t> state_;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // grows with each job; idle workers sleep on it
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace ostro::machine
