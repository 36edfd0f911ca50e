// kMaxHeadDim, kPageSlots: the largest head that attention supports and the length of a page of keys, one
// number each for options, the ops' rules and the kernels.
#pragma once

#include <cstdint>

namespace ostro::ir {

// The largest size of attention's axis "head_dim", in elements. Kernels keep whole rows of it on the stack.
inline constexpr int64_t kMaxHeadDim = 1024;
// The positions of a page (paged_write, paged_attention): one block of keys of numerics.md N9.
inline constexpr int64_t kPageSlots = 128;

}  // namespace ostro::ir
