// quantize: f32 matrices as int8 with scales, as the release has them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {

// Quantises rows of `columns` f32 that share a row of scales; `scales` gets one for each column, `out` as
// many elements as `rows`. A column whose values are whole multiples of some bf16 scale, -127 to 127 times,
// or such products rounded to bf16 (what an import of int8 weights is), gets a scale with which every value
// is that product again. Of any other column a value differs by at most half its scale, which is the column's
// largest magnitude divided by 127, rounded up to bf16. Error: a value that is not finite.
Status quantize(std::span<const float> rows, int64_t columns, std::span<int8_t> out,
                std::span<numerics::Bf16> scales);

}  // namespace ostro::grok
