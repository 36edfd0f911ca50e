// kInt8Block, kMaxInt8Block: the size of a block of integers that share a scale, in elements: the one that
// models have, and the largest (docs/spec/numerics.md N20). A sum of 1040 products of integers of at most 127
// is exact in f32: 1040 * 127^2 < 2^24.
#pragma once

#include <cstdint>

namespace ostro::ir {

inline constexpr int64_t kInt8Block = 256;
inline constexpr int64_t kMaxInt8Block = 1040;

}  // namespace ostro::ir
