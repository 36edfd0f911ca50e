// Machine, available_memory: the resources of the machine that `ostro init` runs on. Training itself never
// asks for them.
#pragma once

#include <cstdint>
#include <string>

namespace ostro::init {

struct Memory {
  int64_t bytes = 0;   // that a new process may take; 0: not known
  std::string source;  // of this number: "MemAvailable", or "the limit of its control group"
};

// The lower of the system's available memory and the memory that the limits of this process' control groups
// (version 1 or 2) leave. `root` stands before /proc and /sys (tests).
Memory available_memory(const std::string& root = "");

struct Machine {
  int cores = 1;
  Memory memory;
  double peak_flops = 0;  // FLOP/s of a large matrix product on all cores, as measured
};

}  // namespace ostro::init
