// kMaxHeadDim: the largest head that attention supports, one limit for options, the op's rule and the
// kernels.
#pragma once

#include <cstdint>

namespace ostro::ir {

// The largest size of attention's axis "head_dim", in elements. Kernels keep whole rows of it on the stack.
inline constexpr int64_t kMaxHeadDim = 1024;

}  // namespace ostro::ir
