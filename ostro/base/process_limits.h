// limit_process: limits what this process, and all that it starts, can take and write, for work on what
// strangers made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro {

struct ProcessLimits {
  std::optional<int64_t> cpu_seconds;  // of each process; beyond it SIGXCPU ends it
  std::optional<int64_t> addresses;    // bytes that each process can map; more is a lack of memory
  // The folders below which alone files and folders can be made, changed and removed; nothing: no limit.
  // Files that are open already stay as they are, and devices can be written to.
  std::optional<std::vector<std::string>> writable;
};

// Sets the limits; they cannot be raised again. Call it in a process of one thread. Errors: kUnsupported if
// the kernel cannot limit what is written (Landlock, Linux 5.13); kIo for what it refuses.
Status limit_process(const ProcessLimits& limits);

// Whether the kernel can limit what is written.
bool can_limit_writing();

}  // namespace ostro
