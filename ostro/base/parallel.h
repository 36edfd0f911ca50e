// A parallel loop over independent pieces of work.
#pragma once

#include <functional>

#include "ostro/base/error.h"

namespace ostro {

// Calls f(0) .. f(n - 1) in any order on `threads` threads, one of which is the caller's. After a failure no
// new calls are started. Returns the failure with the lowest number.
Status parallel_for(int64_t n, int threads, const std::function<Status(int64_t)>& f);

}  // namespace ostro
