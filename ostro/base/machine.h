// The machine: how many cores and how much memory this process may use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro {

// One CPU of every core (not hyper-threads) that this process may run on, ascending; at least one.
std::vector<int> cpus_of_cores();

// The value of the environment variable OSTRO_THREADS, else the number of cores (not hyper-threads) that this
// process may use. Error: not a number from 1 to 1024.
Result<int> default_threads();

// What the processor calls itself: "AMD EPYC 9B45"; "unknown" without /proc.
std::string processor_name();

// Bytes of memory of the machine; 0: not known.
int64_t total_memory();
// What stands behind the name in a file with a "name : value" on each line, as those of /proc; nothing if it
// has none.
std::optional<std::string> value_in(const std::string& path, std::string_view name);

struct AvailableMemory {
  int64_t bytes = 0;   // that a new process may take; 0: not known
  std::string source;  // what said so: "MemAvailable", or "the limit of its control group"
};

// The lowest of what the system has available, of what the limits of this process' control groups leave,
// version 1 or 2, and of what its limit of addresses (ulimit -v) leaves. `root` stands before /proc and /sys
// (tests, which have no limit of addresses).
AvailableMemory available_memory(const std::string& root = "");

}  // namespace ostro
