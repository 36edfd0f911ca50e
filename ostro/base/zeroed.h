// Aligned memory that starts as zeros without a pass over it.
#pragma once

#include "ostro/base/aligned.h"

namespace ostro {

// As allocate_aligned, all bits zero. Large blocks come from the kernel as zeros, page by page as they are
// first touched: by the threads that work on them, not by the one that asks.
AlignedBytes allocate_zeroed(size_t bytes);

}  // namespace ostro
