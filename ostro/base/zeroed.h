// Aligned memory that is filled with zeros.
#pragma once

#include "ostro/base/aligned.h"

namespace ostro {

// Like allocate_aligned, but all bits are zero. Small blocks and reused blocks are filled here. New large
// blocks are not: the kernel gives zero pages when a page is first touched, and that happens in the threads
// that work on the block.
AlignedBytes allocate_zeroed(size_t bytes);

}  // namespace ostro
