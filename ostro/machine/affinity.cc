#include "ostro/machine/affinity.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "ostro/base/machine.h"

namespace ostro::machine {

Result<std::vector<int>> affinity_from_environment(int threads) {
  const char* text = std::getenv("OSTRO_AFFINITY");
  const std::string_view word = text == nullptr ? "" : text;
  if (word.empty() || word == "none") return std::vector<int>();
  if (word != "cores")
    return invalid_argument(fmt::format("OSTRO_AFFINITY is \"{}\"; give none or cores", word));
  std::vector<int> cpus = cpus_of_cores();
  if (static_cast<size_t>(threads) > cpus.size())
    return invalid_argument(
        fmt::format("OSTRO_AFFINITY=cores binds a thread to a core, but there are {} threads and {} cores; "
                    "lower OSTRO_THREADS, or leave OSTRO_AFFINITY out",
                    threads, cpus.size()));
  cpus.resize(static_cast<size_t>(threads));
  return cpus;
}

bool bind_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

BoundThread::BoundThread(CallerCpu& caller) : caller_(caller) {
  CPU_ZERO(&before_);
  if (!caller.cpu || sched_getaffinity(0, sizeof before_, &before_) != 0 || caller.taken.exchange(true))
    return;
  mine_ = true;
  bind_this_thread(*caller.cpu);
}

BoundThread::~BoundThread() {
  if (!mine_) return;
  sched_setaffinity(0, sizeof before_, &before_);
  caller_.taken = false;
}

}  // namespace ostro::machine
