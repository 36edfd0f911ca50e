// kMaxHeadDim, kPageSlots, kInt8Slices: the largest head that attention supports, the length of a page of
// keys and the integers that stand for a number of a product of integers, one number each for options, the
// ops' rules and the kernels.
#pragma once

#include <cstdint>

namespace ostro::ir {

// The largest size of attention's axis "head_dim", in elements. Kernels keep whole rows of it on the stack.
inline constexpr int64_t kMaxHeadDim = 1024;
// The positions of a page (paged_write, paged_attention): one block of keys of numerics.md N9.
inline constexpr int64_t kPageSlots = 128;
// The value of attention's attribute "int8_slices" for products of integers (numerics.md N21). Sums of
// products over kMaxHeadDim are then exact in f32.
inline constexpr int64_t kInt8Slices = 2;

}  // namespace ostro::ir
