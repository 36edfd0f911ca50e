// Aligned memory that starts as zeros; fresh large blocks do without a pass over them.
#pragma once

#include "ostro/base/aligned.h"

namespace ostro {

// As allocate_aligned, all bits zero. Large blocks that the kernel gives are zeros already, page by page as
// they are first touched: by the threads that work on them, not by the one that asks. Small blocks, and kept
// ones that are used again, are filled.
AlignedBytes allocate_zeroed(size_t bytes);

}  // namespace ostro
