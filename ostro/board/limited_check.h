// check_limited: check_entry in a process of its own, with limits of time, processor time, addresses and
// writing, so that a stranger's entry can take no more of this machine.
//
// The process can write below a folder of its own alone, which is removed: compiled kernels. Where the kernel
// cannot limit that, a warning says so. One thread uses the context, and no other may be at work.
#pragma once

#include <chrono>
#include <string>

#include "ostro/board/check.h"

namespace ostro::board {

struct CheckLimits {
  std::chrono::milliseconds time{std::chrono::hours(6)};  // from the beginning to the end
  int64_t cpu_seconds = 0;                                // processor time of all threads together
  int64_t addresses = 0;                                  // bytes that can be mapped
};

struct LimitedCheck {
  CheckResult outcome;  // without `code`, `shared` and `open`, which the text has; of `replayed` the counts
  std::string text;     // check_text
};

// Errors: those of check_entry; kIo when a limit is reached, which names it and the option that raises it, or
// when the process was ended otherwise.
Result<LimitedCheck> check_limited(const Context& context, const Track& track, const Board* board,
                                   const CheckRequest& request, const CheckLimits& limits);

}  // namespace ostro::board
