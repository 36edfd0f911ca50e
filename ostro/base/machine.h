// The machine: the cores and the memory that this process may use. Any thread may call.
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

// The name of the processor, such as "AMD EPYC 9B45"; "unknown" without /proc.
std::string processor_name();

// Bytes of memory of the machine; 0: not known.
int64_t total_memory();
// Returns the value of `name` in a file that has a "name : value" on each line, such as /proc/cpuinfo;
// nothing if the file does not have it.
std::optional<std::string> value_in(const std::string& path, std::string_view name);

struct AvailableMemory {
  int64_t bytes = 0;   // bytes that can still be allocated; 0: not known
  std::string source;  // the limit that gives them: "MemAvailable", "the limit of its control group", ...
};

// Returns the memory that this process can still allocate: the smallest of the memory that the system has
// available, the rest of the limits of its control groups (version 1 or 2), and the rest of its limit of
// addresses (ulimit -v). `root` is for tests: it stands before /proc and /sys, and the limit of addresses is
// then left out.
AvailableMemory available_memory(const std::string& root = "");

}  // namespace ostro
