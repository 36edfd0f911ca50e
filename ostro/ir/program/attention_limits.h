// How wide a head attention takes: the one limit that options, the op's rule and the kernels share.
#pragma once

#include <cstdint>

namespace ostro::ir {

// The size of attention's axis "head_dim" at most: kernels keep whole rows of it on the stack.
inline constexpr int64_t kMaxHeadDim = 1024;

}  // namespace ostro::ir
