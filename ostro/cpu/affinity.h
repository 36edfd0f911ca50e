// Which CPUs the threads of a pool may use.
#pragma once

#include <vector>

#include "ostro/base/error.h"

namespace ostro::cpu {

// One CPU of every core (not hyper-threads) that this process may run on, ascending; at least one.
std::vector<int> cpus_of_cores();

// The environment variable OSTRO_AFFINITY: with "cores" the CPUs that a pool of `threads` is bound to, one a
// thread; empty for "none", and without it: the operating system places the threads. Errors: another word,
// and more threads than cores.
Result<std::vector<int>> affinity_from_environment(int threads);

// Binds the calling thread to a CPU. False when the operating system refuses.
bool bind_this_thread(int cpu);

}  // namespace ostro::cpu
