// quantize: makes int8 numbers with scales of f32 matrices, as Grok-1's release has them. A pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {

// Quantises a matrix [rows][columns] whose columns have one scale each. `rows` holds its values, `out` gets
// as many numbers, from -127 to 127, and `scales` gets one scale for each column.
//
// If some bf16 scale gives every value of a column back, as scale times number or as this product rounded to
// bf16, such a scale is taken. So an import of int8 weights is exported without loss. Otherwise the scale is
// the column's largest magnitude divided by 127, rounded up to bf16, and a value changes by at most half the
// scale. Error: a value that is not finite.
Status quantize(std::span<const float> rows, int64_t columns, std::span<int8_t> out,
                std::span<numerics::Bf16> scales);

}  // namespace ostro::grok
