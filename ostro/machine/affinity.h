// BoundThread, affinity_from_environment: choose and set the CPUs that the threads of a pool may use.
#pragma once

#include <sched.h>

#include <atomic>
#include <optional>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::machine {

// The environment variable OSTRO_AFFINITY: with "cores" the CPUs that a pool of `threads` is bound to, one a
// thread; empty for "none", and without it: the operating system places the threads. Errors: another word,
// and more threads than cores.
Result<std::vector<int>> affinity_from_environment(int threads);

// Binds the calling thread to a CPU, by the number that the operating system gives it. Returns false when the
// operating system refuses.
bool bind_this_thread(int cpu);

// The CPU for a thread that calls a pool but is not one of its workers; none when the pool is not bound.
struct CallerCpu {
  std::optional<int> cpu;
  std::atomic<bool> taken = false;
};

// While it lives, the calling thread is bound to the CPU, unless another thread already is. Its destructor
// restores the CPUs that the thread could use before; otherwise threads that it starts later would inherit
// the binding.
class BoundThread {
 public:
  explicit BoundThread(CallerCpu& caller);
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  CallerCpu& caller_;
  cpu_set_t before_;
  bool mine_ = false;
};

}  // namespace ostro::machine
