// A loop over independent pieces of work, a few at a time.
#pragma once

#include <functional>

#include "ostro/base/error.h"

namespace ostro {

// Calls f(0) .. f(n - 1) from `threads` threads (the caller's is one of them) in any order. Stops handing out
// work after a failure and returns the failure with the lowest number.
Status parallel_for(int64_t n, int threads, const std::function<Status(int64_t)>& f);

}  // namespace ostro
