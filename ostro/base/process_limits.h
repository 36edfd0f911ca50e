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
  std::optional<int64_t> cpu_seconds;  // of each process; beyond it SIGXCPU ends it, or SIGKILL soon
  std::optional<int64_t> addresses;    // bytes that each process can map; more is a lack of memory
  // The folders below which alone files and folders can be made, changed and removed; nothing: no limit.
  // Files that are open already stay as they are. /dev/null and its like, terminals and GPUs can be written
  // to. Landlock does not limit changes of permissions, owners, times and attributes.
  std::optional<std::vector<std::string>> writable;
};

// Sets the limits; without CAP_SYS_RESOURCE they cannot be raised again. Call it in a process of one thread.
// Errors: kUnsupported if the kernel cannot limit what is written (Landlock, Linux 5.13); kIo for what it
// refuses.
Status limit_process(const ProcessLimits& limits);

// How much of what a process writes the kernel can limit: nothing; all but cutting off files that are there,
// also outside of `writable` (Linux 5.13 to 6.1); all.
enum class WritingLimit { kNone, kAllButTruncation, kAll };
WritingLimit writing_limit();

}  // namespace ostro
