// parallel_for: a parallel loop over independent pieces of work.
#pragma once

#include <functional>

#include "ostro/base/error.h"

namespace ostro {

// Calls f(0) .. f(n - 1) in any order on `threads` threads, one of which is the caller's, and returns when
// all calls have ended. After a failure no new calls are started. Returns the failure with the lowest number
// among the calls that were made. `f` must be thread-safe.
Status parallel_for(int64_t n, int threads, const std::function<Status(int64_t)>& f);

}  // namespace ostro
