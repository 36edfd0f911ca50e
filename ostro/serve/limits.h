// TimeLimits, share_of: how long a request may wait and run, and how much of a limit one key may have; and
// the errors of requests that go beyond. Values and pure functions.
#pragma once

#include <chrono>
#include <cstddef>

#include "ostro/serve/json/api_error.h"
#include "ostro/serve/key_queue.h"

namespace ostro::serve {

using Clock = std::chrono::steady_clock;

struct TimeLimits {
  std::chrono::seconds waiting{600};   // from a request's arrival until its first answer begins
  std::chrono::seconds running{3600};  // from then until it is over
};

// So many percent, at least 1.
size_t share_of(size_t all, double percent);

// Why `pushed`, which is not kTaken, says that a request may not wait.
ApiError may_not_wait(Pushed pushed, size_t waiting, double key_share);
// It waited for so long.
ApiError waited_too_long(std::chrono::seconds limit);
// It ran for so long, and the answer `which` of `count` cannot end with what it has.
ApiError ran_too_long(std::chrono::seconds limit, size_t which, size_t count);

}  // namespace ostro::serve
